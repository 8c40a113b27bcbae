"""Sound kernels that compute in float32 are not accused, whatever their numbers: small, saturated, equal, offset."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status
from gradspec.laws import LAWS


def statuses(function, call, *names, **how):
    laws, call = [law for law in LAWS if law.name in names], call if isinstance(call, str) else (call,)
    return {v.law: (v.status, v.finding.message) for v in audit(function, [call], laws=laws, **how).report.verdicts}


class Product(Function):
    """A matrix product that is rounded once; of a cotangent of ones all rows are equal."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x.float() @ w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        y_bar = y_bar.float()
        return (y_bar @ w.float().T).to(x.dtype), (x.float().T @ y_bar).to(w.dtype)


class WithAGain(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        y_bar = 1.004 * y_bar.float()
        return (y_bar @ w.float().T).to(x.dtype), (x.float().T @ y_bar).to(w.dtype)


def test_equal_numbers_have_one_error_of_rounding_and_no_gain():
    call = "(randn(300, 1, dtype=bfloat16), randn(1, 5, dtype=bfloat16))"
    (sound, _), (gained, said) = (
        statuses(function, call, "vjp", reference=torch.matmul)["vjp"] for function in (Product, WithAGain)
    )

    assert sound is Status.HOLDS
    assert gained is Status.BROKEN
    assert "differs" in said or "factor" in said


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, w):
        scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, w, scale)
        return (x.float() * scale * w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        x, w, scale = ctx.saved_tensors
        g = y_bar.float() * w.float()
        x_bar = scale * (g - x.float() * scale.square() * (g * x.float()).mean(-1, keepdim=True))
        return x_bar.to(x.dtype), (y_bar.float() * x.float() * scale).sum(0).to(w.dtype)


class LayerNorm(Function):
    """Of rows whose numbers are equal its variance is zero, and it turns within a hundredth."""

    @staticmethod
    def forward(ctx, x):
        centred = x.float() - x.float().mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
        ctx.save_for_backward(centred * scale, scale)
        return (centred * scale).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        y, scale = ctx.saved_tensors
        g = y_bar.float()
        return ((g - y * (g * y).mean(-1, keepdim=True) - g.mean(-1, keepdim=True)) * scale).to(y_bar.dtype)


class GELU(Function):
    """The form with a hyperbolic tangent, of which little is left of 1 + tanh where x is negative."""

    A = 0.7978845608

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        u = x.float()
        return (0.5 * u * (1 + torch.tanh(GELU.A * (u + 0.044715 * u**3)))).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        u = x.float()
        t = torch.tanh(GELU.A * (u + 0.044715 * u**3))
        slope = 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * GELU.A * (1 + 3 * 0.044715 * u * u)
        return (y_bar.float() * slope).to(x.dtype)


class Entropy(Function):
    """The sum of p log p of logarithms: large where these are, and flat for steps that bfloat16 does not see."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.float().exp() * x.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return (y_bar.float() * x.float().exp() * (1 + x.float())).to(x.dtype)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (RMSNorm, "(randn(1, 1, dtype=bfloat16) * 0.001, randn(1, dtype=bfloat16))"),
        (RMSNorm, "(randn(4, 8, dtype=bfloat16) * 0.001, randn(8, dtype=bfloat16))"),
        (LayerNorm, torch.full((2, 2), 1000.0, dtype=torch.bfloat16)),
        (LayerNorm, torch.ones(2, 4, dtype=torch.bfloat16)),
        (GELU, "(randn(1, 1, dtype=bfloat16) * 0.1 - 5,)"),
        (Entropy, "(randn(1, 1, dtype=bfloat16) * 30,)"),
    ],
)
def test_a_derivative_that_no_step_of_a_half_type_shows_is_not_called_wrong(function, call):
    status, message = statuses(function, call, "surrogate")["surrogate"]

    assert status is not Status.BROKEN, message


class CrossEntropy(Function):
    """Keeps the logarithm of its sum in float32, which has few digits left of large ones."""

    gain = 1.0

    @staticmethod
    def forward(ctx, x, target):
        total = x.logsumexp(-1)
        ctx.save_for_backward(x, total, target)
        return (total - x.gather(1, target[:, None])[:, 0]).mean()

    @classmethod
    def backward(cls, ctx, y_bar):
        x, total, target = ctx.saved_tensors
        p = (x - total[:, None]).exp() * cls.gain
        p[torch.arange(len(x)), target] -= 1
        return p * (y_bar / len(x)), None


class WithMore(CrossEntropy):
    gain = 1.001


def cross_entropy(x, target):
    return -x.log_softmax(-1).gather(1, target[:, None]).mean()


class Clamp(Function):
    """Passes the gradient at its bound too, where the reference passes none: no rounding of x excuses that."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (x >= 0)


@pytest.mark.slow
def test_what_is_right_for_arguments_off_by_rounding_is_right_and_no_kink_is_excused():
    far = "(randn(8, 16, dtype=float32) + 1000, randint(0, 16, (8,)))"
    kink = "(tensor([0.0, 1.0, -1.0, 0.0]),)"

    assert statuses(CrossEntropy, far, "vjp", reference=cross_entropy)["vjp"][0] is Status.HOLDS
    assert statuses(WithMore, far, "vjp", reference=cross_entropy)["vjp"][0] is Status.BROKEN
    assert statuses(Clamp, kink, "vjp", reference=torch.relu)["vjp"][0] is Status.BROKEN


class Running(Function):
    """A running logarithm of sums of exponentials, with its state in float32; torch's own in bfloat16 is far off."""

    @staticmethod
    def forward(ctx, x):
        y = x.float().logcumsumexp(-1)
        ctx.save_for_backward(x, y)
        return y.to(x.dtype, copy=True)

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        x, g = x.float().unsqueeze(-1), y_bar.float()
        after = torch.ones(x.shape[-2], x.shape[-2]).triu().to(g.dtype)
        return ((x - y.unsqueeze(-2)).exp() * after * g.unsqueeze(-2)).sum(-1).to(y_bar.dtype)


def test_a_call_in_another_way_is_not_held_to_what_a_reference_rounds_in_a_half_type():
    call = "(30 * randn(4, 16, dtype=bfloat16),)"
    laws = ("vjp", "checkpoint", "earlier_calls", "compiled_autograd")
    found = statuses(Running, call, *laws, reference=lambda x: x.logcumsumexp(-1))

    assert {law: status for law, (status, _) in found.items() if status is Status.BROKEN} == {}
    assert found["checkpoint"][0] is Status.HOLDS


class LosesRows(Function):
    """Twice x; the rows behind the last eight get no gradient."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, y_bar):
        kept = y_bar.shape[0] - y_bar.shape[0] % 8
        return torch.cat((2 * y_bar[:kept], 0 * y_bar[kept:]))


def test_a_batch_that_is_wrong_in_eager_mode_too_is_not_called_dropped_by_the_compiler():
    laws = [law for law in LAWS if law.name == "dynamic_shapes"]
    (verdict,) = audit(LosesRows, ["(randn(16, 4),)"], laws=laws, reference=lambda x: 2 * x).report.verdicts

    assert verdict.status is Status.BROKEN
    assert verdict.finding.likely == "so it is without torch.compile: a batch of this size shows it"


class InverseTransform(Function):
    """The inverse transform of half a spectrum; of equal cotangents all but the first number cancel."""

    @staticmethod
    def forward(ctx, spectrum):
        return torch.fft.irfft(spectrum, n=7)

    @staticmethod
    def backward(ctx, y_bar):
        weight = torch.full((4,), 2.0, dtype=y_bar.dtype)
        weight[0] = 1.0
        return torch.fft.rfft(y_bar) / 7 * weight


def test_what_cancels_in_a_transform_leaves_the_rounding_of_its_sums():
    found = statuses(
        InverseTransform,
        "(randn(2, 4, dtype=complex64),)",
        "primal",
        "vjp",
        reference=lambda z: torch.fft.irfft(z, n=7),
    )

    assert {status for status, _ in found.values()} == {Status.HOLDS}, found
