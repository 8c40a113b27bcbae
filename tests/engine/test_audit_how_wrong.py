"""An audit says how a backward is wrong: by which factor, for which argument, and where an index repeats."""

import math
import os

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec._audit import _how_wrong
from gradspec._engine._child import available
from gradspec.findings import findings
from gradspec.law import Rank, Status
from gradspec.laws import LAWS
from gradspec.render import finding_text

MEANT = (
    "if it is, as in a straight-through estimator or a clipped gradient, say what it is: the option `surrogate` or "
    "`gradient` of an audit, a check or a spec"
)


class Square(Function):
    factor = 1

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        return cls.factor * y_bar * x


class Negative(Square):
    factor = -2


class Linear(Square):
    factor = 0

    @classmethod
    def backward(cls, ctx, y_bar):
        return y_bar


class Product(Function):
    """Right in `x`, twice too much in `y`."""

    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y)
        return x * y + z

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        return y_bar * y, 2 * y_bar * x, y_bar


class Slope(Square):
    """A wrong slope at negative numbers."""

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.1 * x)

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, y_bar, 0.2 * y_bar)


class Clips(Square):
    @classmethod
    def forward(cls, ctx, x):
        return x.clone()

    @classmethod
    def backward(cls, ctx, y_bar):
        return y_bar.clamp(-0.5, 0.5)


class Ignores(Square):
    """Backward of a loss, which takes its cotangent for 1."""

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum()

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * x


class Rounds(Square):
    """Right to the digits of a float32."""

    factor = 2 * (1 + 3e-8)


class InSingle(Square):
    @classmethod
    def forward(cls, ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("wants float32")
        return Square.forward(ctx, x)


class Embedding(Function):
    @staticmethod
    def forward(ctx, w, index):
        ctx.save_for_backward(index)
        ctx.shape = w.shape
        return w[index]

    @staticmethod
    def backward(ctx, y_bar):
        (index,) = ctx.saved_tensors
        w_bar = y_bar.new_zeros(ctx.shape)
        w_bar[index] = y_bar
        return w_bar, None


def found(function, case, *names):
    return findings(audit(function, [case], laws=[law for law in LAWS if law.name in names]).report)


@pytest.mark.parametrize(
    ("function", "case", "said"),
    [
        (Square, "(randn(2, 3),)", "off by the factor 0.5"),
        (InSingle, "(randn(2, 3),)", "off by the factor 0.5"),
        (Negative, "(randn(2, 3),)", "of the wrong sign"),
        (
            Linear,
            "(randn(2, 3),)",
            "right once the derivative of `x.square()` is applied to it: backward stops short of that step",
        ),
        (
            Slope,
            "(randn(2, 3),)",
            "right with `return torch.where(x > 0, y_bar, 0.1 * y_bar)` in place of `return torch.where(x > 0, y_bar, "
            "0.2 * y_bar)` (test_audit_how_wrong.py:75, in backward)",
        ),
        (
            Clips,
            "(randn(2, 3),)",
            "backward clips the cotangent: right for small ones; right with `y_bar` in place of "
            "`y_bar.clamp(-0.5, 0.5)` (test_audit_how_wrong.py:85, in backward)",
        ),
        (
            Ignores,
            "(randn(2, 3),)",
            "the same for every cotangent: backward ignores the one that it is handed",
        ),
        (
            Rounds,
            "(randn(2, 3),)",
            "off by 3e-08 of itself, as exact as a float32",
        ),
        (
            Product,
            "(randn(3), randn(3), randn(3))",
            "the gradient of `y` is off by the factor 2, and right for `x` and `z`",
        ),
    ],
)
def test_one_factor_in_all_directions_is_named_with_the_argument(function, case, said):
    (finding,) = found(function, case, "surrogate")

    assert finding.verdict.status is Status.BROKEN
    likely = finding.verdict.finding.likely
    assert likely == said or likely.startswith(f"{said}; right with")
    text = finding_text(finding)
    # Nobody means to ignore the cotangent.
    assert (f"  Meant?  {MEANT}" in text) is (function is not Ignores)
    assert ("  Likely: " in text) == bool(said)


class Short(Function):
    """A constant of backward has the digits of a float32; a factor shows beside it whether more is wrong."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x, sigma):
        ctx.save_for_backward(x, torch.tensor(sigma, dtype=torch.float32))
        return torch.erf(x / sigma)

    @classmethod
    def backward(cls, ctx, grad):
        x, sigma = ctx.saved_tensors
        return cls.factor * grad * 2 / math.sqrt(math.pi) / sigma * torch.exp(-((x / sigma) ** 2)), None


class Longer(Short):
    factor = 1 + 1e-5


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
@pytest.mark.parametrize(("function", "rank"), [(Short, Rank.WASTE), (Longer, Rank.WRONG)])
def test_a_constant_in_float32_is_no_wrong_gradient(function, rank, dtype):
    said = found(function, f"(tensor([[1.5, -0.29], [-2.2, 0.57]], dtype={dtype}), 0.2)", "surrogate")
    # Beyond a float32's digits: a program in float32 sees nothing of it.
    is_unseen = function is Short and dtype == "float32"
    assert [one.verdict.finding.rank for one in said] == ([] if is_unseen else [rank])


def test_an_index_that_repeats_is_the_cause_and_the_second_derivative_follows():
    (finding,) = found(Embedding, "(randn(4, 3), tensor([0, 1, 1]))", "surrogate", "second_order")

    assert finding.verdict.law == "surrogate"
    assert finding.verdict.finding.likely.startswith("right where no index repeats: backward assigns")
    assert finding.follows == ["second_order"]


class SegmentMean(Function):
    """Divides by the count of another segment: nothing is assigned, where a table of counts is read wrongly."""

    @staticmethod
    def forward(ctx, x, index, size):
        count = torch.zeros(size, dtype=x.dtype).index_add_(0, index, torch.ones_like(x[:, 0])).clamp(min=1)
        ctx.save_for_backward(index, count)
        return torch.zeros(size, x.shape[1], dtype=x.dtype).index_add_(0, index, x) / count[:, None]

    @staticmethod
    def backward(ctx, y_bar):
        index, count = ctx.saved_tensors
        return y_bar[index] / count[: len(index), None], None, None


def test_of_an_index_that_repeats_no_more_is_said_than_was_shown():
    case = "(randn(6, 2), tensor([0, 0, 0, 2, 2, 4]), 6)"
    (finding,) = found(SegmentMean, case, "surrogate")
    reference = segment_mean_of_one_hot
    (of_reference,) = findings(audit(SegmentMean, [case], laws=["vjp"], reference=reference).report)

    for one in (finding, of_reference):
        assert "repeats: wrong in what the elements of one index share" in one.verdict.finding.likely


def segment_mean_of_one_hot(x, index, size):
    one_hot = (index[None, :] == torch.arange(size)[:, None]).to(x.dtype)
    return one_hot @ x / one_hot.sum(1, keepdim=True).clamp(min=1)


def test_a_clipped_cotangent_is_one_finding():
    (finding,) = found(Clips, "(randn(2, 3),)", "surrogate", "cotangent_linearity")

    assert (finding.verdict.law, finding.follows) == ("surrogate", ["cotangent_linearity"])


def test_a_cotangent_that_is_ignored_is_not_said_to_be_clipped():
    said = {one.verdict.law: one.verdict.finding.likely for one in found(Ignores, "(randn(3),)", "cotangent_linearity")}

    assert said == {"cotangent_linearity": "backward ignores the cotangent"}


def test_a_second_derivative_that_is_lost_does_not_follow_from_a_wrong_backward():
    class Detached(Square):
        @classmethod
        def backward(cls, ctx, y_bar):
            return Square.backward(ctx, y_bar).detach()

    assert [one.verdict.law for one in found(Detached, "(randn(2, 3),)", "surrogate", "second_order")] == [
        "surrogate",
        "second_order",
    ]


def test_a_verdict_that_is_reused_says_it_once():
    laws = [law for law in LAWS if law.name in ("surrogate", "cotangent_linearity")]
    for function in (Square, Clips):
        first = audit(function, ["(randn(2, 3),)"], laws=laws).report
        again = audit(function, ["(randn(2, 3),)"], laws=laws, known=first).report

        assert again.reused == len(laws)
        assert again.verdicts == first.verdicts


class SegmentMax(Function):
    """Right if no segment is empty: the row of an empty one, -1, is the last row in backward."""

    @staticmethod
    def forward(ctx, x, segment, count):
        values = torch.full((count,), -torch.inf, dtype=x.dtype).scatter_reduce(0, segment, x, "amax")
        rows = torch.where(x == values[segment], torch.arange(len(x)), -1)
        where = torch.full((count,), -1).scatter_reduce(0, segment, rows, "amax")
        ctx.save_for_backward(where)
        ctx.n = len(x)
        ctx.mark_non_differentiable(where)
        return values.masked_fill(where < 0, 0), where

    @staticmethod
    def backward(ctx, y_bar, _):
        (where,) = ctx.saved_tensors
        x_bar = y_bar.new_zeros(ctx.n)
        x_bar[where] = y_bar
        return x_bar, None, None


def test_neither_a_sign_nor_an_index_beside_the_output_is_called_the_cause():
    (finding,) = found(SegmentMax, "(randn(6), tensor([0, 0, 1, 3, 3, 3]), 4)", "surrogate")

    assert "negative" not in finding.verdict.finding.likely
    assert "for the others" not in finding.verdict.finding.likely


class Binary(Function):
    """Shuts the gradient above 1, and not below -1."""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0).to(w.dtype)

    @staticmethod
    def backward(ctx, y_bar):
        (w,) = ctx.saved_tensors
        return y_bar * (w <= 1)


def test_a_function_whose_forward_alone_is_known_is_not_told_that_its_gradient_is_that_of_forward():
    reference = torch.nn.functional.hardtanh
    (finding,) = findings(audit(Binary, ["(2 * randn(3, 4),)"], laws=["vjp"], surrogate=reference).report)

    assert finding.verdict.finding.reason.evidence == {"statement": "return y_bar * (w <= 1) * (w.abs() <= 1)"}


class RowsOfTheFirst(torch.autograd.Function):
    """Takes the mean of each row off; backward takes the length of the first dimension for the number of rows."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x - x.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, y_bar):
        rows = ctx.shape[0]
        flat = y_bar.reshape(rows, -1)
        return (flat - flat.mean(1, keepdim=True)).reshape(ctx.shape)


def test_what_mends_a_batch_of_one_and_no_other_is_not_said():
    (verdict,) = audit(RowsOfTheFirst, ["(randn(1, 2, 4),)"], laws=["surrogate"]).report.verdicts
    assert verdict.status is Status.BROKEN
    assert "shape[1]" not in verdict.finding.likely


class Centred(torch.autograd.Function):
    """Times a weight that is centred around one if it is said so; forward does not, or backward always does."""

    in_forward, in_backward = True, True

    @classmethod
    def forward(cls, ctx, x, weight, centred):
        ctx.save_for_backward(x, weight)
        ctx.centred = centred
        return x * (weight + 1 if centred and cls.in_forward else weight)

    @classmethod
    def backward(cls, ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar * (weight + 1 if ctx.centred or not cls.in_backward else weight), (y_bar * x).sum(0), None


def centred_by(x, weight, centred):
    return x * (weight + centred)


class NotInForward(Centred):
    in_forward = False


class AlwaysInBackward(Centred):
    in_backward = False


class WrongInItsBranch(Centred):
    @classmethod
    def backward(cls, ctx, y_bar):
        x, weight = ctx.saved_tensors
        return y_bar * (weight - 1 if ctx.centred else weight), (y_bar * x).sum(0), None


def test_what_is_wrong_in_the_branch_of_a_flag_is_mended_there():
    call = "(randn(4, 5), randn(5), True)"
    (verdict,) = audit(WrongInItsBranch, [call], laws=["vjp"], reference=centred_by).report.verdicts
    assert "`weight + 1` in place of `weight - 1`" in verdict.finding.likely


@pytest.mark.parametrize(
    ("function", "centred", "law"), [(NotInForward, True, "primal"), (AlwaysInBackward, False, "vjp")]
)
def test_a_flag_that_is_forgotten_is_named(function, centred, law):
    call = f"(randn(4, 5), randn(5), {centred})"
    found = audit(function, [call], laws=["primal", "vjp"], reference=lambda x, weight, centred: x * (weight + centred))
    (verdict,) = found.report.of(law=law)
    assert verdict.finding.likely == f"right where `centred` is {not centred}, and wrong where it is {centred}"


class Gathered(torch.autograd.Function):
    """What each of several ranks gathers; backward keeps of each gradient the slice of its own rank."""

    @staticmethod
    def forward(ctx, *xs):
        ctx.sizes = [len(x) for x in xs]
        return tuple(torch.cat(xs) for _ in xs)

    @staticmethod
    def backward(ctx, *bars):
        return tuple(bar.split(ctx.sizes)[rank] for rank, bar in enumerate(bars))


def test_the_output_of_which_an_argument_gets_nothing_is_named():
    (verdict,) = audit(Gathered, ["(randn(2, 3), randn(2, 3))"], laws=["surrogate"]).report.verdicts
    assert verdict.finding.likely.startswith("the gradient of `xs[0]` ignores the cotangent of output 1: ")


@pytest.mark.skipif(not available("cpu"), reason="needs a child process")
def test_the_numbers_are_told_where_the_search_for_a_cause_ends_its_process(monkeypatch):
    monkeypatch.setattr(_how_wrong, "why_not_derivative", lambda *_: os._exit(3))

    (verdict,) = audit(Negative, ["(randn(3),)"], laws=["surrogate"]).report.verdicts

    assert "gradient of `x` (random cotangent) differs in 3 of 3 elements" in verdict.finding.message
    assert verdict.finding.likely == ""


class LastRowsLost(Function):
    """A normalisation whose weights get the sums of whole blocks of rows: none, where there are fewer rows."""

    @staticmethod
    def forward(ctx, x, weight):
        scale = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        centred = (x - x.mean(-1, keepdim=True)) * scale
        ctx.save_for_backward(centred, scale, weight)
        return centred * weight

    @staticmethod
    def backward(ctx, grad):
        centred, scale, weight = ctx.saved_tensors
        g = grad * weight
        x_bar = scale * (g - g.mean(-1, keepdim=True) - centred * (g * centred).mean(-1, keepdim=True))
        whole = len(grad) // 8 * 8
        return x_bar, (grad[:whole] * centred[:whole]).sum(0)


def test_zeros_are_no_clipped_cotangent():
    report = audit(
        LastRowsLost,
        ["(randn(16, 6), randn(6))", "(randn(1, 2), randn(2))"],
        laws=[law for law in LAWS if law.name == "surrogate"],
    ).report

    (verdict,) = report.violations
    assert "clips" not in verdict.finding.likely
