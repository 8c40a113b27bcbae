"""Which gradients an audit asks about, and which are wrong whatever anybody says of them."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import judge
from gradspec.law import Rank, Status
from gradspec.laws import LAWS

CHEAP = [law for law in LAWS if law.name in ("surrogate", "cotangent_linearity")]


def made(forward, backward):
    """Return a Function of a value and of what backward does with the cotangents and the arguments."""

    class Made(Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.save_for_backward(*args)
            return forward(*args)

        @staticmethod
        def backward(ctx, *bars):
            return backward(*bars, *ctx.saved_tensors)

    return Made


def clipped(g, x):
    return g.clamp(-1, 1)


def of_step(g, x, s):
    return g, (g * ((x / s).round() - x / s)).sum().reshape(s.shape)


FLAT = [
    made(torch.round, lambda g, x: g),
    made(torch.sign, lambda g, x: g * (x.abs() < 1)),
    made(lambda x: (x > 0).to(x.dtype), lambda g, x: g / (1 + x.square())),
    made(lambda x: (x / 0.01).floor() * 0.01, lambda g, x: g),
    made(lambda x: x.round().sum(), lambda g, x: g.expand(x.shape)),
    made(lambda x: torch.floor(x + torch.rand_like(x)), lambda g, x: g),
]
#: Quantisers of a range: those whose gradient is masked where the range clips, and those whose is not.
MASKED = [
    made(lambda x: (4 * x).round().clamp(-8, 7) / 4, lambda g, x: g * ((4 * x >= -8) & (4 * x <= 7))),
    made(lambda x: x.round().clamp(-1, 1), lambda g, x: g / x.cosh().square()),
    made(torch.sign, lambda g, x: g),
    made(torch.floor, lambda g, x: g),
]
UNMASKED = [
    made(lambda x: (4 * x).round().clamp(-8, 7) / 4, lambda g, x: g),
    made(lambda x: x.round().clamp(-1, 1), lambda g, x: 0.1 * g),
]
HANDED_ON = [
    made(lambda x: x.clone(), lambda g, x: 0.5 * g),
    made(lambda x: x.view_as(x), lambda g, x: -g),
    made(lambda x: x[:2], lambda g, x: torch.cat((2 * g, torch.zeros_like(x[2:])))),
    made(lambda x: x.clone(), lambda g, x: g * (x > 0)),
]
WRONG = [
    made(torch.sin, lambda g, x: g * x.sin()),
    made(lambda x: x.clone(), clipped),
    made(lambda x: x.clone(), lambda g, x: torch.ones_like(g)),
    made(lambda x: x.clamp(-1, 1), lambda g, x: g),
    made(lambda x: 2 * x, lambda g, x: g),
    made(lambda x: x.relu(), lambda g, x: 0.5 * g * (x > 0)),
    made(torch.round, lambda g, x: g * torch.nan),
    made(lambda x: x.softmax(-1), lambda g, x: g * x.softmax(-1)),
    made(lambda x: x - x.mean(), lambda g, x: g),
]


def asked(function, *cases):
    found = audit(function, list(cases), laws=CHEAP)
    return {verdict.law: verdict for verdict in found.report.verdicts}


@pytest.mark.parametrize("function", FLAT)
def test_a_gradient_of_what_is_flat_is_asked_about(function):
    verdict = asked(function, "(randn(4, 3),)")["surrogate"]

    assert verdict.status is Status.QUESTION
    assert verdict.finding.message.startswith(
        "Is the gradient of `args[0]` meant? Forward is flat nearly everywhere in `args[0]`"
    )
    assert "the option `surrogate`" in verdict.finding.likely


@pytest.mark.parametrize("function", UNMASKED)
def test_a_range_that_clips_without_a_mask_is_named(function):
    said = asked(function, "(randn(64),)")["surrogate"].finding.message

    assert "It clips `args[0]` too, and backward does not mask what was clipped: its gradient there is not 0." in said


@pytest.mark.parametrize("function", MASKED)
def test_no_mask_is_missed_where_there_is_one_or_nothing_is_clipped(function):
    assert "clips" not in asked(function, "(randn(64),)")["surrogate"].finding.message


@pytest.mark.parametrize("function", HANDED_ON)
def test_a_gradient_of_what_is_handed_on_is_asked_about(function):
    verdict = asked(function, "(randn(4, 3),)")["surrogate"]

    assert verdict.status is Status.QUESTION
    assert "Forward hands on what it is given, and backward " in verdict.finding.message


class Reversed(torch.autograd.Function):
    sign = -1

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @classmethod
    def backward(cls, ctx, y_bar):
        return cls.sign * ctx.factor * y_bar, None


class NotReversed(Reversed):
    sign = 1


class Divided(Reversed):
    @classmethod
    def backward(cls, ctx, y_bar):
        return y_bar / ctx.factor, None


class Rounded(torch.autograd.Function):
    times = 15

    @staticmethod
    def forward(ctx, x, factor):
        return (x * 15).round() / 15

    @classmethod
    def backward(cls, ctx, y_bar):
        return cls.times * y_bar, None


class RoundedRightly(Rounded):
    times = 1


class Masked(Reversed):
    @classmethod
    def backward(cls, ctx, y_bar):
        return y_bar.clone().index_fill(0, torch.tensor([0]), 0), None


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (Reversed, "backward multiplies the cotangent by -`factor`."),
        (NotReversed, "backward multiplies the cotangent by `factor`."),
        (Divided, "backward multiplies the cotangent by 1 / `factor`."),
        (Rounded, "Backward multiplies the cotangent by 15."),
        (RoundedRightly, "Backward hands on the cotangent."),
        (Masked, "backward changes the cotangent."),
    ],
)
def test_a_question_says_by_what_backward_multiplies(function, says):
    (verdict,) = audit(function, ["(randn(4, 3), 0.3)"], laws=["surrogate"]).report.verdicts

    assert verdict.status is Status.QUESTION
    assert says in verdict.finding.message


@pytest.mark.parametrize("function", WRONG)
def test_any_other_gradient_is_broken(function):
    verdicts = asked(function, "(randn(4, 3),)")

    assert Status.BROKEN in {v.status for v in verdicts.values()} or verdicts["surrogate"].status is Status.INCONCLUSIVE
    assert Status.QUESTION not in {v.status for v in verdicts.values()}


@pytest.mark.parametrize("case", ["(zeros(4, 3),)", "(tensor([0.5, 1.5, 2.5]),)", "(arange(6, dtype=float32),)"])
def test_a_call_on_the_edge_of_a_step_is_asked_about_too(case):
    assert asked(FLAT[0], case)["surrogate"].status in (Status.QUESTION, Status.HOLDS)


def test_a_learned_step_size_is_one_question():
    lsq = made(lambda x, s: (x / s).round() * s, of_step)

    assert asked(lsq, "(randn(4, 3), tensor([0.3]))")["surrogate"].status is Status.QUESTION


class LearnedStep(Function):
    """A step size that learns, of numbers that are clipped: what lies outside moves smoothly with the step."""

    @staticmethod
    def forward(ctx, w, step, low, high):
        ctx.save_for_backward(w / step)
        ctx.ends = low, high
        return (w / step).round().clamp(low, high) * step

    @staticmethod
    def backward(ctx, grad):
        (q,) = ctx.saved_tensors
        low, high = ctx.ends
        inside = (q >= low) & (q <= high)
        return grad * inside, (grad * torch.where(inside, q.round() - q, q.clamp(low, high))).sum(), None, None


class Doubled(Function):
    """Smooth and curved in its scale, whose gradient is doubled: nothing jumps, and nobody is asked."""

    @staticmethod
    def forward(ctx, w, step):
        ctx.save_for_backward(w, step)
        return w.round() + (w * step).exp()

    @staticmethod
    def backward(ctx, grad):
        w, step = ctx.saved_tensors
        return grad * step * (w * step).exp(), 2 * (grad * w * (w * step).exp()).sum()


@pytest.mark.parametrize("call", ["(3*randn(4, 5), tensor(0.5), -4, 3)", "(3*randn(64), tensor(0.1), -8, 7)"])
def test_a_learned_step_size_of_clipped_numbers_is_one_question(call):
    assert asked(LearnedStep, call)["surrogate"].status is Status.QUESTION


def test_a_doubled_gradient_of_a_smooth_scale_is_no_question():
    assert asked(Doubled, "(randn(4, 5), tensor(0.5))")["surrogate"].status is Status.BROKEN


class Rows(Function):
    """An embedding; the row that is named, or the last one, gets no gradient."""

    is_named = True

    @staticmethod
    def forward(ctx, index, table, padding):
        ctx.save_for_backward(index)
        ctx.shape, ctx.padding = table.shape, padding
        return table[index]

    @classmethod
    def backward(cls, ctx, y_bar):
        (index,) = ctx.saved_tensors
        table_bar = torch.zeros(ctx.shape, dtype=y_bar.dtype).index_add_(0, index, y_bar)
        table_bar[ctx.padding if cls.is_named else -1] = 0
        return None, table_bar, None


class LosesItsLast(Rows):
    is_named = False


def embedded(index, table, padding):
    return torch.nn.functional.embedding(index, table, padding_idx=padding)


def test_a_row_that_an_argument_names_is_asked_about():
    found = audit(Rows, ["(tensor([0, 3, 5, 1, 2, 5, 4]), randn(6, 5), 2)"], laws=["surrogate"]).report
    (verdict,) = found.of(law="surrogate")

    assert verdict.finding.status is Status.QUESTION
    assert verdict.finding.message.startswith("Is it meant that row 2 of `table` gets no gradient? It is the row that")
    assert "`padding` names, whichever that is" in verdict.finding.message
    assert not judge(found).fails


@pytest.mark.parametrize(("function", "status"), [(Rows, Status.HOLDS), (LosesItsLast, Status.BROKEN)])
def test_a_row_without_a_gradient_is_not_asked_about_where_a_reference_says_which(function, status):
    call = "(tensor([0, 3, 5, 1, 2, 5, 4]), randn(6, 5), 2)"
    found = audit(function, [call], laws=["surrogate", "vjp"], reference=embedded).report
    assert [found.of(law=law)[0].status for law in ("surrogate", "vjp")] == [Status.HOLDS, status]


def test_a_row_that_is_lost_and_that_no_argument_names_is_wrong():
    for padding in (5, 2):
        call = f"(tensor([0, 3, 5, 1, 2, 5, 4]), randn(6, 5), {padding})"
        (verdict,) = audit(LosesItsLast, [call], laws=["surrogate"]).report.of(law="surrogate")
        assert (verdict.finding.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)


class Normalises(torch.autograd.Function):
    """Takes the mean and the inverse deviation that a module has computed without a graph, and goes through both."""

    @staticmethod
    def forward(ctx, x, weight, mean, rstd):
        normed = (x - mean) * rstd
        ctx.save_for_backward(normed, weight, rstd)
        return normed * weight

    @classmethod
    def backward(cls, ctx, y_bar):
        normed, weight, rstd = ctx.saved_tensors
        bar = y_bar * weight
        x_bar = bar - bar.mean(0) - normed * (bar * normed).mean(0)
        return rstd * x_bar, (y_bar * normed).sum(0), None, None


class ForgetsTheMean(Normalises):
    @classmethod
    def backward(cls, ctx, y_bar):
        normed, weight, rstd = ctx.saved_tensors
        bar = y_bar * weight
        return rstd * (bar - normed * (bar * normed).mean(0)), (y_bar * normed).sum(0), None, None


def test_a_gradient_through_statistics_that_are_arguments_is_asked_about():
    x, weight = torch.randn(16, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    mean, rstd = x.mean(0), (x.var(0, correction=0) + 1e-5).rsqrt()
    (verdict,) = audit(Normalises, [(x, weight, mean, rstd)], laws=["surrogate"]).report.verdicts
    assert verdict.status is Status.QUESTION
    assert "Is it meant that the gradient of `x` goes through `mean` and `rstd`? Here `mean` is the mean over " in (
        verdict.finding.message
    )
    for function, args in (
        (ForgetsTheMean, (mean, rstd)),
        (Normalises, (mean + 1, rstd)),
        (Normalises, (mean, 2 * rstd)),
    ):
        (verdict,) = audit(function, [(x, weight, *args)], laws=["surrogate"]).report.verdicts
        assert (verdict.status, verdict.finding.rank) == (Status.BROKEN, Rank.WRONG)
