"""A mistake in one expression of backward is said with its line and with what the expression should be."""

from pathlib import Path

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(-1, keepdim=True))


class OtherSign(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar + (y_bar * y).sum(-1, keepdim=True))


class OtherReduction(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).mean(-1, keepdim=True))


class OtherDimension(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(0, keepdim=True))


class NormalisesOver(Function):
    """Divides the last two dimensions by their root of a mean square."""

    @staticmethod
    def forward(ctx, x):
        scale = x.square().mean((1, 2), keepdim=True).rsqrt()
        ctx.save_for_backward(x * scale, scale)
        return x * scale

    @staticmethod
    def backward(ctx, y_bar):
        y, scale = ctx.saved_tensors
        dims = (1, 2)
        return scale * (y_bar - y * (y_bar * y).mean(dims, keepdim=True))


class OverTooFew(NormalisesOver):
    @staticmethod
    def backward(ctx, y_bar):
        y, scale = ctx.saved_tensors
        dims = (2,)
        return scale * (y_bar - y * (y_bar * y).mean(dims, keepdim=True))


class OverTooMany(NormalisesOver):
    @staticmethod
    def backward(ctx, y_bar):
        y, scale = ctx.saved_tensors
        dims = (0, 1, 2)
        return scale * (y_bar - y * (y_bar * y).mean(dims, keepdim=True))


class OtherSaved(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        y, _ = ctx.saved_tensors
        return y * (y_bar - (y_bar * y).sum(-1, keepdim=True))


class Silu(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x.sigmoid() * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        s = x.sigmoid()
        slope = s * (1 + x)
        return y_bar * slope * w, (y_bar * x * s).sum(0)


def doubled(value, least):
    """Double a number until it is large, which takes for ever if it is negative."""
    while value < least:
        value = value * 2
    return value


class Loops(Softmax):
    """Hangs where the argument of its loop has another sign."""

    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        scale = doubled(y.sum(), 10)
        return 3 * y * y_bar + scale


class Random(Softmax):
    """Wrong in no way that one expression mends."""

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        return y_bar * y.square() + x.cos() * y_bar.flip(0)


def said(function, call, **how):
    (found, *_) = findings(audit(function, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)
    return found.verdict.finding


@pytest.mark.parametrize("with_reference", [True, False])
@pytest.mark.parametrize(
    ("function", "new", "old"),
    [
        (OtherSign, "y_bar - (y_bar * y).sum(-1, keepdim=True)", "y_bar + (y_bar * y).sum(-1, keepdim=True)"),
        (OtherReduction, "(y_bar * y).sum(-1, keepdim=True)", "(y_bar * y).mean(-1, keepdim=True)"),
        (OtherDimension, "(y_bar * y).sum(1, keepdim=True)", "(y_bar * y).sum(0, keepdim=True)"),
    ],
)
def test_the_expression_that_makes_the_gradient_right_is_named(function, new, old, with_reference):
    how = {"reference": lambda x: x.softmax(-1)} if with_reference else {}
    before = function.backward
    finding = said(function, "(randn(3, 4),)", **how)

    line = next(n for n, text in enumerate(LINES, 1) if old in text)
    assert finding.likely.startswith(f"right with `{new}` in place of `{old}` (test_repaired.py:{line}, in backward)")
    assert function.backward is before


@pytest.mark.parametrize(("function", "old"), [(OverTooFew, "(2,)"), (OverTooMany, "(0, 1, 2)")])
def test_the_dimensions_of_a_reduction_are_named(function, old):
    finding = said(function, "(randn(3, 4, 2),)")
    assert finding.likely.startswith(f"right with `(1, 2)` in place of `{old}` (test_repaired.py:")


def test_a_factor_that_is_missing_within_is_named():
    finding = said(Silu, "(randn(3, 4), randn(4))", reference=lambda x, w: x * x.sigmoid() * w)

    said_so = "right with `slope = s * (1 + x * (1 - s))` in place of `slope = s * (1 + x)` (test_repaired.py:"
    assert finding.likely.startswith(said_so)


def test_what_no_expression_mends_is_not_said():
    finding = said(Random, "(randn(3, 4),)", reference=lambda x: x.softmax(-1))

    assert finding.reason is None or finding.reason.kind != "repair"


@pytest.mark.slow
def test_a_loop_that_does_not_end_in_another_reading_ends():
    finding = said(Loops, "(randn(3, 4),)", reference=lambda x: x.softmax(-1))

    assert finding.message.startswith("gradient of `x`")
    assert finding.reason is None or finding.reason.kind != "repair"


def test_a_backward_that_holds_names_of_another_function_is_read_too():
    factor = torch.tensor(2.0)

    class Within(Softmax):
        @staticmethod
        def backward(ctx, y_bar):
            _, y = ctx.saved_tensors
            return y * (y_bar + factor * (y_bar * y).sum(-1, keepdim=True) / 2)

    finding = said(Within, "(randn(3, 4),)", reference=lambda x: x.softmax(-1))
    assert finding.likely.startswith("right with `y_bar - factor * (y_bar * y).sum(-1, keepdim=True) / 2` in place of")


class Gate(Function):
    """Keeps what its gradient needs: the sigmoid, its argument and a number."""

    @staticmethod
    def forward(ctx, x, w, power):
        s = x.sigmoid()
        moved = s.pow(power)
        ctx.save_for_backward(moved, x, w)
        ctx.power = power
        return moved * w

    @staticmethod
    def backward(ctx, y_bar):
        moved, x, w = ctx.saved_tensors
        slope = ctx.power * moved * (1 - x.sigmoid())
        return y_bar * slope * w, y_bar * moved, None


class KeepsAnother(Gate):
    @staticmethod
    def forward(ctx, x, w, power):
        s = x.sigmoid()
        moved = s.pow(power)
        ctx.save_for_backward(s, x, w)
        ctx.power = power
        return moved * w


class Power(Function):
    """Keeps an exponent that is one too small."""

    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power - 1
        return x**power

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * ctx.power * x ** (ctx.power - 1), None


def gate(x, w, power):
    return x.sigmoid().pow(power) * w


def power_of(x, power):
    return x**power


@pytest.mark.parametrize(
    ("function", "call", "reference", "new", "old"),
    [
        (
            KeepsAnother,
            "(randn(3, 4), randn(4), 3)",
            gate,
            "ctx.save_for_backward(moved, x, w)",
            "ctx.save_for_backward(s, x, w)",
        ),
        (Power, "(rand(3, 4) + 0.5, 3)", power_of, "ctx.power = power", "ctx.power = power - 1"),
    ],
)
def test_what_forward_keeps_is_named(function, call, reference, new, old):
    finding = said(function, call, reference=reference)

    line = next(n for n, text in enumerate(LINES, 1) if text.strip() == old)
    new, old = (text.removeprefix("ctx.power = ") for text in (new, old))
    assert finding.likely == f"right with `{new}` in place of `{old}` (test_repaired.py:{line}, in forward)"
    assert "forward" in vars(function)


class SwiGLU(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * a.sigmoid() * b

    @staticmethod
    def backward(ctx, y_bar):
        a, b = ctx.saved_tensors
        s = a.sigmoid()
        return y_bar * b * s * 1, y_bar * a * s


class Centred(Softmax):
    @staticmethod
    def backward(ctx, y_bar):
        _, y = ctx.saved_tensors
        mean = (y_bar * y).sum(-1, keepdim=True)
        return -y * mean


@pytest.mark.parametrize(
    ("function", "call", "reference", "new"),
    [
        pytest.param(
            SwiGLU,
            "(randn(3, 4), randn(3, 4))",
            lambda a, b: a * a.sigmoid() * b,
            "(1 + a * (1 - s))",
            marks=pytest.mark.slow,
        ),
        (Centred, "(randn(3, 4),)", lambda x: x.softmax(-1), "(y_bar * y).sum(-1, keepdim=True) - y_bar"),
    ],
)
def test_a_term_that_is_missing_is_named(function, call, reference, new):
    finding = said(function, call, reference=reference)

    assert finding.reason.kind == "repair"
    assert new in finding.likely


class Rounds(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar - y_bar


def test_a_gradient_that_should_be_zero_is_not_repaired_by_what_cancels():
    finding = said(Rounds, "(randn(3, 4),)", reference=lambda x: x.detach().round() + 0 * x)

    assert finding.reason is None or finding.reason.kind != "repair"


class Edge(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (y,) = ctx.saved_tensors
        return y_bar * (y >= 0)


class Exchanged(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, x * x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, 2 * x * y_bar, y_bar)


def _gradients(y_bar, x, w):
    return y_bar @ w, y_bar.mT @ x.flip(0)


class Calls(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.mT

    @staticmethod
    def backward(ctx, y_bar):
        return _gradients(y_bar, *ctx.saved_tensors)


class LowRank(Function):
    @staticmethod
    def forward(ctx, x, a, b):
        ctx.save_for_backward(x, a, b)
        return x @ a + x.square() @ b

    @staticmethod
    def backward(ctx, y_bar):
        x, a, b = ctx.saved_tensors  # noqa: RUF059  # what is missing is made of it
        through = 2 * x * (y_bar @ b.mT)
        return through, x.mT @ y_bar, x.square().mT @ y_bar


class Running(Function):
    """Adds up from the beginning, and its gradient must from the end."""

    @staticmethod
    def forward(ctx, x):
        return x.cumsum(dim=-1)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.cumsum(dim=-1)


@pytest.mark.parametrize(
    ("function", "call", "new", "old"),
    [
        (Running, "(randn(2, 5),)", "y_bar.flip(-1).cumsum(dim=-1).flip(-1)", "y_bar.cumsum(dim=-1)"),
        (Edge, "(randn(3, 4),)", "y > 0", "y >= 0"),
        (
            Exchanged,
            "(randn(3, 4),)",
            "torch.where(x > 0, y_bar, 2 * x * y_bar)",
            "torch.where(x > 0, 2 * x * y_bar, y_bar)",
        ),
        (Calls, "(randn(3, 4), randn(2, 4))", "x", "x.flip(0)"),
        pytest.param(
            LowRank,
            "(randn(3, 4), randn(4, 2), randn(4, 2))",
            "2 * x * (y_bar @ b.mT) + y_bar @ a.mT",
            "2 * x * (y_bar @ b.mT)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_edge_an_order_a_call_and_a_product_are_named(function, call, new, old):
    finding = said(function, call)

    line = next(n for n, text in enumerate(LINES, 1) if f" {old}" in text or f"({old})" in text)
    assert finding.likely.startswith(f"right with `{new}` in place of `{old}` (test_repaired.py:{line}, in ")


class Phase(Function):
    """The gradient of a complex argument without its conjugate, and another of a real one with too much of it."""

    @staticmethod
    def forward(ctx, z, w):
        ctx.save_for_backward(z, w)
        return z * w

    @staticmethod
    def backward(ctx, y_bar):
        z, w = ctx.saved_tensors
        return y_bar * w.conj(), y_bar * z


def test_the_gradient_of_a_complex_argument_needs_no_reference_to_be_explained():
    finding = said(Phase, "(randn(3, dtype=complex128), randn(3, dtype=complex128))")

    assert finding.message.startswith(
        "backward does not apply the derivative of what forward computes: gradient of `w`"
    )
    assert "conj" in finding.likely


class Forwards(Function):
    """Undoes its steps in the order in which forward made them."""

    @staticmethod
    def forward(ctx, x):
        first = x.softmax(0)
        second = first.softmax(1)
        ctx.save_for_backward(first, second)
        return second

    @staticmethod
    def backward(ctx, y_bar):
        for dim, y in enumerate(ctx.saved_tensors):
            y_bar = y * (y_bar - (y_bar * y).sum(dim, keepdim=True))
        return y_bar


class Leaky(Function):
    """A leaky sum over time that starts again behind a large one; backward hands on through the start."""

    @staticmethod
    def forward(ctx, x, leak):
        v, fired, sums, masks = torch.zeros_like(x[0]), torch.zeros_like(x[0]), [], []
        for row in x:
            v = leak * v * (1 - fired) + row
            fired = (v > 0.5).to(v.dtype)
            sums.append(v)
            masks.append(fired)
        ctx.leak = leak
        ctx.save_for_backward(torch.stack(masks))
        return torch.stack(sums)

    @staticmethod
    def backward(ctx, y_bar):
        (masks,) = ctx.saved_tensors
        carry, x_bar = torch.zeros_like(y_bar[0]), torch.empty_like(masks)
        for t in range(len(y_bar) - 1, -1, -1):
            carry = y_bar[t] + ctx.leak * carry
            x_bar[t] = carry
        return x_bar, None


class Unread(Function):
    """Reads one of the two numbers that forward keeps."""

    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x)
        ctx.scale, ctx.shift = scale, shift
        return (scale * (x - shift)).tanh()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * ctx.scale / (ctx.scale * x).cosh().square(), None, None


@pytest.mark.parametrize(
    ("function", "call", "new", "old"),
    [
        (
            Forwards,
            "(randn(3, 4),)",
            "reversed(list(enumerate(ctx.saved_tensors)))",
            "enumerate(ctx.saved_tensors)",
        ),
        (Unread, "(randn(3), 0.7, 0.4)", "(x - ctx.shift)", "x"),
        (Leaky, "(randn(6, 4), 0.8)", "ctx.leak * carry * (1 - masks[t])", "ctx.leak * carry"),
    ],
)
def test_the_way_of_a_loop_and_what_forward_keeps_are_named(function, call, new, old):
    likely = said(function, call).likely

    assert likely.startswith("right with `")
    right, wrong = (part.strip("` ") for part in likely.removeprefix("right with ").partition("in place of")[::2])
    assert new in right
    assert new not in wrong
    assert right.replace(new, old, 1) in wrong or old in wrong


class Clamped(Function):
    """Takes the mask of what it has clamped: no number is outside then."""

    @staticmethod
    def forward(ctx, x):
        y = x.clamp(-0.5, 2.5)
        ctx.save_for_backward((y >= -0.5) & (y <= 2.5))
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (inside,) = ctx.saved_tensors
        return y_bar * inside


def test_an_edge_that_mends_one_end_of_a_clip_is_not_said_alone():
    call = "(tensor([0.3, -1.4, 1.5, -0.7, 1.9]),)"

    assert float(torch.tensor([0.3, -1.4, 1.5, -0.7, 1.9]).max()) < 2.5, (
        "the other end is reached by larger numbers only"
    )
    assert "`(y > -0.5) & (y < 2.5)` in place of" in said(Clamped, call).likely


class MeanFree(Function):
    """Takes the mean off, and not off the gradient."""

    @staticmethod
    def forward(ctx, x):
        return x - x.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


class RMSNorm(Function):
    """Has the gradient of a scale that does not depend on x."""

    @staticmethod
    def forward(ctx, x):
        r = (x.square().mean(-1, keepdim=True)).rsqrt()
        ctx.save_for_backward(x * r, r)
        return x * r

    @staticmethod
    def backward(ctx, y_bar):
        y, r = ctx.saved_tensors  # noqa: RUF059  # what is missing is made of it
        return y_bar * r


class Bent(Function):
    """Lacks the product of all three."""

    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b, c)
        return a + a * a * b * c / 2

    @staticmethod
    def backward(ctx, y_bar):
        a, b, c = ctx.saved_tensors
        slope = torch.ones_like(a)
        return y_bar * slope, y_bar * a * a * c / 2, y_bar * a * a * b / 2


class Ignoring(Function):
    """A cross entropy that ignores a class, whose rows get a gradient all the same."""

    @staticmethod
    def forward(ctx, logits, target, ignored):
        kept = target.where(target != ignored, 0)
        probabilities = logits.softmax(-1)
        ctx.save_for_backward(probabilities, kept, target)
        ctx.ignored = ignored
        losses = -logits.log_softmax(-1).gather(-1, kept[:, None])[:, 0]
        return losses.where(target != ignored, 0)

    @staticmethod
    def backward(ctx, y_bar):
        probabilities, kept, target = ctx.saved_tensors  # noqa: RUF059  # of the mask that is missing
        hot = torch.nn.functional.one_hot(kept, probabilities.shape[-1])
        return (probabilities - hot) * y_bar[:, None], None, None


@pytest.mark.parametrize(
    ("function", "call", "new"),
    [
        (MeanFree, "(randn(3, 4),)", "return y_bar - y_bar.mean(-1, keepdim=True)"),
        (RMSNorm, "(randn(3, 4),)", "return y_bar * r - y * (y_bar * r * y).mean(-1, keepdim=True)"),
        pytest.param(
            Bent,
            "(randn(3), randn(3), randn(3))",
            "slope = torch.ones_like(a) + a * b * c",
            marks=pytest.mark.slow,
        ),
        (Ignoring, "(randn(4, 3), tensor([0, 1, 2, 1]), 1)", "(target != ctx.ignored)[..., None]"),
    ],
)
def test_what_a_norm_a_sum_of_products_and_a_mask_lack_is_named(function, call, new):
    finding = said(function, call)

    assert finding.reason.kind == "repair"
    assert new in finding.reason.evidence["statement"]


@torch.library.custom_op("repaired::soft_cross_entropy", mutates_args=())
def soft_cross_entropy(x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    return x.logsumexp(-1) * p.sum(-1) - (p * x).sum(-1)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def takes_probabilities(ctx, y_bar):
    x, p = ctx.saved_tensors
    return y_bar[:, None] * (x.softmax(-1) - p), y_bar[:, None] * (x.logsumexp(-1, keepdim=True) - x)


soft_cross_entropy.register_autograd(takes_probabilities, setup_context=keep)


def test_what_the_backward_of_an_operator_lacks_is_named():
    finding = said(soft_cross_entropy, "(randn(4, 3), rand(4, 3))")

    assert finding.likely.startswith("right with `x.softmax(-1) * p.sum(-1, keepdim=True)` in place of `x.softmax(-1)`")
    assert soft_cross_entropy._backward_fn is takes_probabilities


class Rows(Function):
    """Rows by a square of indices, which repeat; the gradient keeps the last one of each."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index.reshape(-1)].reshape(len(index), len(index), -1)

    @staticmethod
    def backward(ctx, y_bar):
        (index,) = ctx.saved_tensors
        table_bar = y_bar.new_zeros(ctx.shape)
        table_bar[index.reshape(-1)] = y_bar.flatten(0, 1)
        return table_bar, None


class Fixed(Function):
    """A fixed point of many steps, whose gradient solves with the matrix and not with its transpose."""

    @staticmethod
    def forward(ctx, x, weight):
        y = torch.zeros_like(x)
        for _ in range(100):
            y = (y @ weight.mT).tanh() / 2 + x
        ctx.save_for_backward(y, weight)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        y, weight = ctx.saved_tensors
        slope = (1 - (y @ weight.mT).tanh().square()) / 2
        step = slope[..., None] * weight
        x_bar = torch.linalg.solve(torch.eye(y.shape[-1]).to(y) - step, y_bar[..., None])[..., 0]
        return x_bar, (x_bar * slope).mT @ y


class Occupied(Function):
    """Takes a softmax off twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(-1)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar[:, None] * (x.square() - x.softmax(-1)) * -1 + y_bar[:, None] * 0


class Renamed(Function):
    """Gives the name of what it has saved to something else; another reading writes there."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        x = x.cos()
        return y_bar * x * x


class Padded(Function):
    """Rows of a table, of which backward leaves the first out, as if it were padding."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, y_bar):
        (index,) = ctx.saved_tensors
        table_bar = y_bar.new_zeros(ctx.shape).index_add_(0, index, y_bar)
        table_bar[0] = 0
        return table_bar, None


@pytest.mark.parametrize(
    ("function", "call", "words"),
    [
        (Padded, "(randn(4, 2), tensor([1, 0, 3]))", "right without `table_bar[0] = 0` (test_repaired.py:"),
        (Renamed, "(randn(3),)", "right with `y_bar * x` in place of `y_bar * x * x`"),
        (
            Rows,
            "(randn(4, 2), tensor([[2, 1, 0], [3, 2, 1], [0, 3, 2]]))",
            "right with `table_bar.index_put_(",
        ),
        pytest.param(
            Fixed,
            "(randn(4, 3), randn(3, 3) / 4)",
            "right with `(slope[..., None] * weight).mT` in place of",
            marks=pytest.mark.slow,
        ),
        (Occupied, "(randn(3, 4),)", "right with `-x.softmax(-1)` in place of `x.square() - x.softmax(-1)`"),
    ],
)
def test_a_statement_of_another_form_and_a_difference_too_many_are_named(function, call, words):
    assert said(function, call).likely.startswith(words)


class Narrow(Function):
    """The pinball loss: `torch.where` of two numbers of Python is a float32."""

    @staticmethod
    def forward(ctx, x, q):
        ctx.save_for_backward(x)
        ctx.q = q
        return torch.maximum(q * x, (q - 1) * x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * torch.where(x > 0, ctx.q, ctx.q - 1.0), None


def pinball(x, q):
    return torch.where(x > 0, q * x, (q - 1) * x)


def test_a_repair_of_what_is_off_by_the_digits_of_a_float32_says_so_first():
    likely = said(Narrow, "(randn(5), 0.9)", reference=pinball).likely

    assert likely.startswith("as exact as a float32; right with ")


class Along(Function):
    """The mean along any dimension, whose gradient is spread along the first."""

    @staticmethod
    def forward(ctx, x, dim):
        ctx.save_for_backward(x)
        return x - x.square().mean(dim, keepdim=True)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar - 2 * x * y_bar.mean(0, keepdim=True), None


def test_what_mends_one_value_of_an_option_and_breaks_another_is_not_said():
    likely = said(Along, "(randn(3, 4), 2 - 1)").likely

    assert "in place of" not in likely
    assert likely == "right where `dim` is 0, and wrong where it is 1"


class Centred(Function):
    """The mean along a dimension taken off, whose backward knows the last one alone, twice in a line."""

    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        ctx.save_for_backward(x)
        return x - x.sum(dim, keepdim=True) / x.shape[dim]

    @staticmethod
    def backward(ctx, y_bar):
        mean = y_bar.sum(-1, keepdim=True) / y_bar.size(-1)
        return y_bar - mean, None


class Slots(Function):
    """Differences of neighbours in a table; the gradient of the right one goes to the left."""

    @staticmethod
    def forward(ctx, table, left):
        ctx.save_for_backward(left)
        ctx.size = len(table)
        return 3 * table[left + 1] - table[left]

    @staticmethod
    def backward(ctx, y_bar):
        (left,) = ctx.saved_tensors
        right = y_bar.new_zeros(ctx.size).index_add_(0, left, 3 * y_bar)
        return right - y_bar.new_zeros(ctx.size).index_add_(0, left, y_bar), None


class Nearest(Function):
    """Twice the sum over what is nearest; a nearest one that repeats is written once."""

    @staticmethod
    def forward(ctx, x, centres):
        nearest = (x[:, None] - centres).abs().argmin(1)
        ctx.save_for_backward(x, centres, nearest)
        return (x - centres[nearest]).square()

    @staticmethod
    def backward(ctx, y_bar):
        x, centres, nearest = ctx.saved_tensors
        x_bar = 2 * y_bar * (x - centres[nearest])
        centres_bar = torch.zeros_like(centres)
        centres_bar[nearest] -= x_bar
        return x_bar, centres_bar


@pytest.mark.parametrize(
    ("function", "call", "right"),
    [
        (Centred, "(randn(3, 4), 0)", "mean = y_bar.sum(ctx.dim, keepdim=True) / y_bar.size(ctx.dim)"),
        (Slots, "(randn(5), tensor([0, 2, 3, 2]))", "y_bar.new_zeros(ctx.size).index_add_(0, left + 1, 3 * y_bar)"),
        (Nearest, "(randn(6), tensor([-3.0, 4.0]))", "centres_bar.index_put_((nearest,), -x_bar, True)"),
    ],
)
def test_a_dimension_in_two_places_an_index_and_a_sum_over_an_index_are_named(function, call, right):
    assert said(function, call).likely.startswith(f"right with `{right}` in place of")


class Clip(Function):
    """Keeps what lies between two bounds; backward knows the lower one alone."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x * ((x > -low) & (x < high))

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * ((x > -ctx.low) & (x < 1.0)), None, None


class Shrink(Function):
    """Shrinks by an option; backward knows one value of it, for which its mask is that of the output, too."""

    @staticmethod
    def forward(ctx, x, lambd):
        ctx.save_for_backward(x)
        ctx.lambd = lambd
        return x.sign() * (x.abs() - lambd).relu()

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * (x.abs() > 1.0), None


class Warm(Function):
    """A smooth largest element; backward forgets the temperature: for a half, twice the argument mends it too."""

    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x)
        ctx.t = t
        return t * torch.logsumexp(x / t, -1)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar.unsqueeze(-1) * torch.softmax(x, -1), None


@pytest.mark.parametrize(
    ("function", "call", "right"),
    [
        (Clip, "(randn(5, 5), 0.5, 0.5)", "ctx.high"),
        (Shrink, "(randn(4, 5), 0.5)", "ctx.lambd"),
        (Warm, "(randn(3, 4), 0.5)", "x / ctx.t"),
    ],
)
def test_where_one_reading_is_refuted_by_another_value_of_an_option_the_next_is_tried(function, call, right):
    likely = said(function, call).likely

    new, _, old = likely.partition(" in place of ")
    assert right in new
    assert right not in old


class Tanh(Function):
    """What is done to its cotangent is said by those that inherit from it."""

    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x)
        ctx.gain = gain
        return gain * x.tanh()

    @staticmethod
    def of(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return y_bar * ctx.gain * (1 - x.tanh() ** 2)


class Clipped(Tanh):
    @staticmethod
    def backward(ctx, y_bar):
        return Tanh.of(ctx, y_bar.clamp(-1, 1)), None


class ClippedAfterwards(Tanh):
    @staticmethod
    def backward(ctx, y_bar):
        return torch.clamp(Tanh.of(ctx, y_bar), -0.5, 0.5), None


class Signs(Tanh):
    @staticmethod
    def backward(ctx, y_bar):
        return Tanh.of(ctx, torch.sign(y_bar)), None


class Normalised(Tanh):
    """Of no cotangent it makes NaN, which is no term that backward adds."""

    @staticmethod
    def backward(ctx, y_bar):
        return Tanh.of(ctx, y_bar / y_bar.norm()), None


class Decayed(Tanh):
    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return Tanh.of(ctx, y_bar) + 0.01 * x, None


class Halved(Tanh):
    @staticmethod
    def backward(ctx, y_bar):
        return Tanh.of(ctx, y_bar.half().double()), None


@pytest.mark.parametrize(
    ("function", "done", "old"),
    [
        (Clipped, "backward clips the cotangent", "y_bar.clamp(-1, 1)"),
        (ClippedAfterwards, "backward clips the cotangent", "torch.clamp(Tanh.of(ctx, y_bar), -0.5, 0.5)"),
        (Signs, "backward takes the sign of the cotangent alone", "torch.sign(y_bar)"),
        (Normalised, "backward normalises the cotangent", "y_bar / y_bar.norm()"),
        (Decayed, "backward adds what no cotangent has made", "Tanh.of(ctx, y_bar) + 0.01 * x"),
        (Halved, "right with", "y_bar.half()"),
    ],
)
@pytest.mark.parametrize("reference", [None, lambda x, gain: gain * x.tanh()], ids=["alone", "reference"])
def test_what_is_done_to_a_cotangent_is_said_once_and_with_its_line(function, done, old, reference):
    law = "surrogate" if reference is None else "vjp"
    report = audit(function, ["(randn(3, 4), 2.0)"], laws=[law, "cotangent_linearity"], reference=reference).report

    assert [one.verdict.law for one in findings(report)] == [law]
    likely = findings(report)[0].verdict.finding.likely
    assert likely.startswith(done)
    assert f"in place of `{old}`" in likely


class Carried(Function):
    """Both gradients take twice the cotangent of the second output."""

    @staticmethod
    def forward(ctx, x, h):
        ctx.save_for_backward(x, h)
        return x * h, x + h

    @staticmethod
    def backward(ctx, y_bar, last_bar):
        x, h = ctx.saved_tensors
        return y_bar * h + 2 * last_bar, y_bar * x + last_bar.add(last_bar)


def test_what_mends_one_gradient_alone_names_the_output_whose_cotangent_is_misread():
    report = audit(
        Carried, ["(randn(3), randn(3))"], laws=["vjp"], reference=lambda x, h: (x * h, x + h), wrt=("x", "h")
    ).report

    likely = findings(report)[0].verdict.finding.likely
    assert likely.startswith("the gradient of `x` is right with")
    assert likely.endswith("; wrong for the cotangent of output 1, right for the others")


def soft_ranks(x):
    return torch.sigmoid(2 * (x[..., :, None] - x[..., None, :])).sum(-1)


class SoftRanks(Function):
    """What an element does to the ranks of the others is left out."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return soft_ranks(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(2 * (x[..., :, None] - x[..., None, :]))
        return y_bar * (2 * s * (1 - s)).sum(-1)


class RanksOfSquares(SoftRanks):
    """What it does to the others is there, and another term is not."""

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(2 * (x[..., :, None] - x[..., None, :]))
        d = 2 * s * (1 - s)
        return y_bar * d.sum(-1) - (d * y_bar[..., :, None]).sum(-2) + y_bar.flip(-1) * x


@pytest.mark.parametrize(("function", "says"), [(SoftRanks, True), (RanksOfSquares, False)])
def test_what_an_element_does_to_others_is_said_to_be_missing_where_nothing_comes_from_them(function, says):
    report = audit(function, ["(randn(2, 4),)"], laws=["vjp"], reference=soft_ranks).report

    likely = findings(report)[0].verdict.finding.likely
    assert ("at its own place alone, and moves other outputs, too" in likely) is says, likely


def rotated(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class Rotary(Function):
    """The turn and the product with the sine change places in backward."""

    @staticmethod
    def forward(ctx, x, cosine, sine):
        ctx.save_for_backward(cosine, sine)
        return x * cosine + rotated(x) * sine

    @staticmethod
    def backward(ctx, y_bar):
        cosine, sine = ctx.saved_tensors
        return y_bar * cosine - rotated(y_bar) * sine, None, None


def test_a_factor_that_belongs_inside_of_a_call_is_named():
    # An odd size has no two halves to turn.
    report = audit(
        Rotary,
        ["(randn(2, 3, 4), cos(randn(3, 4)), sin(randn(3, 4)))"],
        laws=["vjp"],
        reference=lambda x, cosine, sine: x * cosine.detach() + rotated(x) * sine.detach(),
    ).report

    says = "right with `rotated(y_bar * sine)` in place of `rotated(y_bar) * sine`"
    assert findings(report)[0].verdict.finding.likely.startswith(says)


def angles(positions, half, base):
    turns = positions.double()[:, None] * base ** (-torch.arange(half).double() / half)
    return turns.cos(), turns.sin()


class RotaryFromZero(Function):
    """Backward counts the positions from zero on, and reads of those that it has saved nothing but the device."""

    @staticmethod
    def forward(ctx, x, positions, base=100.0):
        ctx.save_for_backward(positions)
        ctx.base = base
        cosine, sine = angles(positions, x.shape[-1] // 2, base)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)

    @staticmethod
    def backward(ctx, y_bar):
        (positions,) = ctx.saved_tensors
        counted = torch.arange(y_bar.shape[-2], device=positions.device)
        cosine, sine = angles(counted, y_bar.shape[-1] // 2, ctx.base)
        a, b = y_bar.chunk(2, -1)
        return torch.cat((a * cosine + b * sine, b * cosine - a * sine), -1), None, None


def test_what_backward_has_saved_and_does_not_read_is_named_where_it_is_right():
    # Where the base is 0, an option that is tried, no gradient is a number; and no reading may compute with huge sizes.
    report = audit(RotaryFromZero, ["(randn(2, 3, 4), tensor([3, 4, 5]))"], laws=["surrogate"]).report

    says = "right with `positions` in place of `torch.arange(y_bar.shape[-2], device=positions.device)`"
    assert findings(report)[0].verdict.finding.likely.startswith(says)


class Columns(Function):
    """Columns at an index that is rounded of positions, to which backward adds once where two of them meet."""

    @staticmethod
    def forward(ctx, x, where):
        ctx.save_for_backward(where)
        ctx.size = x.shape
        return x[:, where.floor().long()]

    @staticmethod
    def backward(ctx, y_bar):
        (where,) = ctx.saved_tensors
        index = where.floor().long()
        x_bar = y_bar.new_zeros(ctx.size)
        x_bar[:, index] += 2 * y_bar / 2
        return x_bar, None


def test_a_sum_at_an_index_behind_a_whole_dimension_is_named():
    report = audit(Columns, ["(randn(2, 4), tensor([0.5, 2.5, 0.7]))"], laws=["surrogate"]).report

    says = "right with `x_bar.movedim(0, -1).index_put_((index,), (2 * y_bar / 2).movedim(0, -1), True)` in place of"
    assert findings(report)[0].verdict.finding.likely.startswith(says)
