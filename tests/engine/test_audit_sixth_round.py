"""What an audit says of defects as others have reported them, and of sound functions that look like one."""

import re

import pytest
import torch
from torch import nn
from torch.autograd import Function

from gradspec import Case, FunctionSpec, audit
from gradspec._finding import MEANT
from gradspec.law import Rank, Status, TrialOf, broken
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._transform import of_moved_state
from gradspec.profile import load_profile


class HalfWritten(Function):
    """A gate: the gradient of its second half is computed, and never written into what is returned."""

    @staticmethod
    def forward(ctx, xz):
        ctx.save_for_backward(xz)
        x, z = xz.chunk(2, dim=1)
        return x * nn.functional.silu(z)

    @staticmethod
    def backward(ctx, y_bar):
        x, z = ctx.saved_tensors[0].chunk(2, dim=1)
        xz_bar, s = torch.zeros_like(ctx.saved_tensors[0]), z.sigmoid()
        x_bar, z_bar = xz_bar.chunk(2, dim=1)
        x_bar.copy_(y_bar * z * s)
        z_bar = y_bar * x * s * (1 + z * (1 - s))  # noqa: F841  # which is the defect
        return xz_bar


class Filter(Function):
    """A filter in the Fourier domain that lacks the conjugate in both gradients."""

    @staticmethod
    def forward(ctx, x, w):
        spectrum = torch.fft.fft(x)
        ctx.save_for_backward(spectrum, w)
        return torch.fft.ifft(spectrum * w)

    @staticmethod
    def backward(ctx, y_bar):
        spectrum, w = ctx.saved_tensors
        bar = torch.fft.fft(y_bar)
        return torch.fft.ifft(bar * w), (bar * spectrum).sum(0) / spectrum.shape[-1]


class InSlices(Function):
    """A gradient that is made in slices of the batch, each of which overwrites the one before."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        weight_bar = torch.zeros_like(weight)
        for i in range(0, len(x), 2):
            weight_bar = x[i : i + 2].mT @ y_bar[i : i + 2]
        return y_bar @ weight.mT, weight_bar


class Sample(Function):
    """Reads between the places of an image; the gradient of a place that is clamped to the border is not shut."""

    @staticmethod
    def forward(ctx, image, grid):
        inside = (grid > 0) & (grid < len(image) - 1)
        place = grid.clamp(0, len(image) - 1)
        left = place.floor().clamp(max=len(image) - 2).long()
        slope = image[left + 1] - image[left]
        ctx.save_for_backward(image, left, place - left, slope, inside)
        return image[left] + slope * (place - left)

    @staticmethod
    def backward(ctx, y_bar):
        image, left, share, slope, inside = ctx.saved_tensors  # noqa: RUF059  # of the mask that is missing
        image_bar = torch.zeros_like(image).index_add(0, left, y_bar * (1 - share))
        return image_bar.index_add(0, left + 1, y_bar * share), y_bar * slope


class Equilibrium(Function):
    """The fixed point of z = tanh(0.2 W z + x), whose adjoint system lacks the identity."""

    @staticmethod
    def forward(ctx, x, w):
        z = x
        for _ in range(100):
            z = torch.tanh(0.2 * z @ w.mT + x)
        ctx.save_for_backward(z, w)
        return z

    @staticmethod
    def backward(ctx, z_bar):
        z, w = ctx.saved_tensors
        s = 1 - z * z
        slope = s.unsqueeze(2) * (0.2 * w)
        x_bar = s * torch.linalg.solve(slope.transpose(1, 2), -z_bar.unsqueeze(2)).squeeze(2)
        return x_bar, 0.2 * x_bar.mT @ z


def combined(experts, weights, slots):
    return (weights.where(slots >= 0, 0).unsqueeze(-1) * experts).sum(1)


class Combine(Function):
    """A weighted sum of experts: the weight of a slot that is negative, and not owned, gets a gradient all the same."""

    @staticmethod
    def forward(ctx, experts, weights, slots):
        ctx.save_for_backward(experts, weights.where(slots >= 0, 0))
        return combined(experts, weights, slots)

    @staticmethod
    def backward(ctx, y_bar):
        experts, w = ctx.saved_tensors
        return w.unsqueeze(-1) * y_bar.unsqueeze(1), torch.einsum("td,tkd->tk", y_bar, experts), None


class Scale(Function):
    """Scales columns, and adds up the gradient of the scale block by block in the dtype of the scale."""

    least = torch.bfloat16

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @classmethod
    def backward(cls, ctx, y_bar):
        x, weight = ctx.saved_tensors
        total = torch.zeros_like(weight, dtype=torch.promote_types(weight.dtype, cls.least))
        for i in range(0, len(x), 2):
            total += (y_bar[i : i + 2] * x[i : i + 2]).to(total.dtype).sum(0)
        return y_bar * weight, total.to(weight.dtype)


class ScaleIn32(Scale):
    """Adds up in float32 at least."""

    least = torch.float32


KEPT = {}


class Scratch(Function):
    """Works in memory that outlives the call; the last column of x has no part in the result."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        memory = KEPT.setdefault((x.shape, x.dtype), torch.zeros_like(x))
        torch.add(x.cos(), 1.7, out=memory)
        return (2 * x[:, :2] * x[:, :2]).sum(1)

    @staticmethod
    def cleared(memory):
        return memory.zero_()

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        memory = cls.cleared(KEPT[x.shape, x.dtype])
        memory[:, :2] = 4 * y_bar[:, None] * x[:, :2]
        return memory.clone()


class Uncleared(Scratch):
    """Does not clear it: the last column of the gradient is what was there before."""

    @staticmethod
    def cleared(memory):
        return memory


MLP = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 3))


class Checkpoint(Function):
    """Runs a module again in backward, and hands on the gradients of its parameters."""

    @staticmethod
    def forward(ctx, x, *parameters):
        ctx.save_for_backward(x, *parameters)
        return MLP(x)

    @staticmethod
    def backward(ctx, y_bar):
        x, *parameters = ctx.saved_tensors
        with torch.enable_grad():
            y = MLP(x := x.detach().requires_grad_())
        return torch.autograd.grad(y, [x, *parameters], y_bar)


class Rotate(Function):
    """Rotates vectors by quaternions, and refuses those whose length is not 1."""

    @staticmethod
    def forward(ctx, q, v):
        if not torch.allclose(q.norm(dim=-1), torch.ones_like(q[..., 0]), atol=1e-4):
            raise ValueError("quaternions must have length 1")
        w, u = q[..., :1], q[..., 1:]
        c = torch.linalg.cross(u, v)
        ctx.save_for_backward(q, v, c)
        return v + 2 * (w * c + torch.linalg.cross(u, c))

    @staticmethod
    def backward(ctx, y_bar):
        q, v, c = ctx.saved_tensors
        w, u = q[..., :1], q[..., 1:]
        c_bar = 2 * (w * y_bar + torch.linalg.cross(y_bar, u))
        u_bar = 2 * torch.linalg.cross(c, y_bar) + torch.linalg.cross(v, c_bar)
        q_bar = torch.cat([2 * (y_bar * c).sum(-1, keepdim=True), u_bar], -1)
        return q_bar, y_bar + torch.linalg.cross(c_bar, u)


class Int8(Function):
    """Codes times a scale, straight through."""

    @staticmethod
    def forward(ctx, x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        codes = torch.round(x / scale).to(torch.int8)
        ctx.mark_non_differentiable(codes, scale)
        return codes, scale, codes.to(x.dtype) * scale

    @staticmethod
    def backward(ctx, _codes, _scale, y_bar):
        return y_bar


class Clipped(Function):
    """Hands its argument on, and limits the gradient on purpose."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.clamp(-1, 1)


def quantised(x, codebook):
    q = codebook[torch.cdist(x, codebook).argmin(1)]
    commitment = (x - q.detach()).square().mean()
    of_codes = (q - x.detach()).square().mean()
    return x + (q - x).detach(), of_codes + 0.25 * commitment


def stopped_twice(x, y):
    of_x = (x - y.detach()).square()
    of_y = (y - x.detach()).square()
    return x + (x * y).detach(), of_x + 0.25 * of_y


@torch.no_grad()
def turned(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a - b, a + b], -1)


class RunningScale(nn.Module):
    """Divides by a running mean square, which moves before it is read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("running", torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            self.running.lerp_(x.square().mean(0).to(self.running), 0.1)
        return x * torch.rsqrt(self.running + 1e-5).to(x.dtype)


def judged(function, call, law="surrogate", **how):
    (verdict,) = audit(function, [call], laws=[law], jobs=1, **how).report.of(law=law)
    return verdict


BLOCKS = "(randn(512, 8, dtype=bfloat16), randn(8, dtype=bfloat16))"
UNIT = "(tensor([[1.0, 0.0, 0.0, 0.0], [0.6, 0.0, 0.8, 0.0]]), randn(2, 3))"
SLOTS = "(randn(4, 2, 3), rand(4, 2), tensor([[0, 1], [2, -1], [1, 3], [-1, 0]]))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "call", "new"),
    [
        pytest.param(InSlices, "(randn(4, 30), randn(30, 2))", "+ weight_bar", marks=pytest.mark.slow),
        (HalfWritten, "(randn(2, 4, 3),)", "z_bar.copy_(y_bar * x * s"),
        (Sample, "(randn(6), tensor([-1.0, 0.3, 2.6, 4.1, 7.0]))", "* inside"),
        pytest.param(Equilibrium, "(randn(3, 4), randn(4, 4))", "torch.eye(", marks=pytest.mark.slow),
        # Of one gradient where the other is wrong for a reason of its own.
        (Filter, "(randn(2, 4, dtype=complex128), randn(4, dtype=complex128))", "w.conj()"),
    ],
)
def test_the_statement_that_mends_a_gradient_is_named(function, call, new):
    reason = judged(function, call).finding.reason

    assert reason.kind == "repair"
    assert new in reason.evidence["statement"]
    assert reason.evidence.get("argument") == ("x" if function is Filter else None)


@pytest.mark.parametrize(
    ("function", "call", "how", "kind", "words"),
    [
        (Combine, SLOTS, {}, "negative index", "`slots` is negative"),
        (Combine, SLOTS, {"law": "vjp", "reference": combined}, "negative index", "`slots` is negative"),
        (Scale, BLOCKS, {}, "accumulated", "a sum that is carried in bfloat16"),
        (Uncleared, "(randn(2, 3),)", {}, "offset", "without any, the gradient is not zero"),
        (stopped_twice, "(randn(6, 4), randn(6, 4))", {}, "cut", r"^right once detach\(\) is left out \((.+, ){2}"),
    ],
)
def test_the_cause_is_named(function, call, how, kind, words):
    verdict = judged(function, call, **how)

    assert (verdict.status, verdict.finding.reason.kind) == (Status.BROKEN, kind)
    assert re.search(words, verdict.finding.reason.words)


@pytest.mark.parametrize(
    ("function", "call", "law", "said"),
    [
        (ScaleIn32, BLOCKS, "surrogate", Status.HOLDS),
        (Rotate, UNIT, "surrogate", Status.HOLDS),
        (Int8, "(randn(3, 6),)", "surrogate", Status.QUESTION),
        (quantised, "(randn(6, 4), randn(8, 4))", "surrogate", Status.QUESTION),
        (lambda x: Checkpoint.apply(x, *MLP.parameters()), "(randn(2, 3),)", "needs_input_grad", Status.HOLDS),
        (RunningScale(), "(randn(4, 3),)", "checkpoint", Status.NOT_PROMISED),
        (Scratch, "(randn(2, 3),)", "declared_writes", Rank.WASTE),
    ],
)
def test_a_sound_function_is_not_accused(function, call, law, said):
    verdict = judged(function, call, law)

    assert said in (verdict.status, verdict.finding.rank)


def test_a_clipped_gradient_is_told_how_to_declare_it():
    verdict = judged(Clipped, "(randn(3, 4),)", "cotangent_linearity")

    assert (verdict.status, verdict.finding.reason.kind) == (Status.BROKEN, "clipped")
    assert "the option `gradient`" in verdict.finding.details[MEANT]


def test_the_answer_for_two_lost_gradients_names_both():
    call = "(randn(4, 6), randn(4, 6), randn(4, 6))"
    verdict = judged(lambda q, k, v: (turned(q) @ turned(k).mT).softmax(-1) @ v, call)

    assert verdict.status is Status.QUESTION
    assert verdict.finding.message.startswith("Are `q` and `k` trained?")
    assert verdict.finding.message.endswith(
        "name them in the option `zero_gradient` of an audit, or of a spec whose surrogate detaches it."
    )


class RotateTwice(Rotate):
    """Has both gradients twice."""

    @staticmethod
    def backward(ctx, y_bar):
        return tuple(2 * bar for bar in Rotate.backward(ctx, y_bar))


def test_a_wrong_gradient_shows_in_a_domain_that_long_steps_leave():
    verdict = judged(RotateTwice, UNIT)

    assert (verdict.status, verdict.finding.likely) == (Status.BROKEN, "off by the factor 2")


class Listed(nn.Module):
    """Has a parameter in a list, where neither `parameters()` nor `state_dict()` sees it."""

    def __init__(self):
        super().__init__()
        self.weights = [nn.Parameter(torch.ones(3))]

    def forward(self, x):
        return x * self.weights[0]


def test_a_parameter_that_a_module_has_in_a_list_is_still_found():
    assert judged(Listed(), "(randn(2, 3),)", "needs_input_grad").status is Status.BROKEN


def test_a_cotangent_of_which_each_number_is_clipped_is_not_called_normalised():
    assert judged(Clipped, "(randn(3),)", "cotangent_linearity").finding.reason.kind == "clipped"


def reads_what_it_moves(x, m):
    return x * m.add_(1)


def moves_what_it_does_not_read(x, m):
    m.add_(1)
    return 2 * x


@pytest.mark.parametrize(
    ("function", "status"),
    [(reads_what_it_moves, Status.NOT_PROMISED), (moves_what_it_does_not_read, Status.BROKEN)],
)
def test_a_checkpoint_is_excused_only_where_the_state_that_moved_decides(function, status):
    def primal(x, m):
        return function(x, m)

    primal.__dict__["gradspec_moving"] = {"m"}
    case = Case(torch.ones(3), torch.zeros(3))
    spec = FunctionSpec(name="moves", function=function, primal=primal, wrt=("x",), cases=[case])
    trial = TrialOf(spec=spec, case=case, profile=load_profile("quick"), seed=0)

    assert of_moved_state(trial, Inputs.of(trial), broken("differs")).status is status
