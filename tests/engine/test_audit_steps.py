"""Functions that round, count or compare: their gradient may be meant, and that hides no other one that is wrong."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Status


class RoundedWeight(Function):
    """x @ round(w), straight through the rounding."""

    of_x = 1.0

    @staticmethod
    def forward(ctx, x, w):
        q = (w * 8).round() / 8
        ctx.save_for_backward(x, q)
        return x @ q.T

    @classmethod
    def backward(cls, ctx, y_bar):
        x, q = ctx.saved_tensors
        return cls.of_x * y_bar @ q, y_bar.T @ x


class RoundedWeightTwice(RoundedWeight):
    of_x = 2.0


class Scaled(RoundedWeight):
    """The scale of its codes follows the largest number of a row: that one moves it, and the others do not."""

    @staticmethod
    def forward(ctx, x, w):
        scale = w.abs().amax(1, keepdim=True) / 127
        q = (w / scale).round().to(torch.int8).to(w.dtype) * scale
        ctx.save_for_backward(x, q)
        return x @ q.T


class ScaledTwice(Scaled):
    of_x = 2.0


class Signs(RoundedWeight):
    """Signs of a weight, times the mean of its sizes: each element moves the scale."""

    @staticmethod
    def forward(ctx, x, w):
        q = w.sign() * w.abs().mean()
        ctx.save_for_backward(x, q)
        return x @ q.T


class Largest(Function):
    """A factor too much, where few elements move anything and nothing jumps."""

    @staticmethod
    def forward(ctx, x):
        y, index = x.max(-1)
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return y

    @staticmethod
    def backward(ctx, y_bar):
        (index,) = ctx.saved_tensors
        return 2 * y_bar.new_zeros(ctx.shape).scatter_(-1, index[:, None], y_bar[:, None])


class InFloat8(RoundedWeight):
    """Takes float32 only."""

    @staticmethod
    def forward(ctx, x, w):
        scale = 448 / w.abs().max()
        q = (w * scale).to(torch.float8_e4m3fn).float() / scale
        ctx.save_for_backward(x, q)
        return x @ q.T


class LearnedStep(Function):
    """LSQ, https://arxiv.org/abs/1902.08153: the gradient of the step is that of the rounded quotient."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).clamp(-8, 7).round() * step

    @staticmethod
    def backward(ctx, y_bar):
        x, step = ctx.saved_tensors
        v = x / step
        inside = (v >= -8) & (v <= 7)
        of_step = torch.where(inside, v.round() - v, v.clamp(-8, 7))
        return y_bar * inside, (y_bar * of_step).sum()


class Range(Function):
    """A quantiser of a learned range: where it clips, the ends of the range are all that is left."""

    below = True

    @staticmethod
    def forward(ctx, x, low, width):
        step = width / 15
        ctx.save_for_backward(x, low, width)
        return ((x.clamp(low, low + width) - low) / step).round() * step + low

    @classmethod
    def backward(cls, ctx, y_bar):
        x, low, width = ctx.saved_tensors
        above, below = x > low + width, x < low
        v = (x - low) / width * 15
        of_width = torch.where(above, 1.0, torch.where(below, 0.0, (v.round() - v) / 15))
        of_low = above | below if cls.below else above
        return y_bar * ~(above | below), (y_bar * of_low).sum(), (y_bar * of_width).sum()


class RangeWithoutLow(Range):
    below = False


class Cell(Function):
    """A spike, and the voltage after it: the spike is a step, and the voltage is reset by one."""

    @staticmethod
    def forward(ctx, x, v):
        u = 0.9 * v + x
        spike = (u > 1).to(u.dtype)
        ctx.save_for_backward(u)
        return spike, u - spike

    @staticmethod
    def backward(ctx, spike_bar, u_bar):
        (u,) = ctx.saved_tensors
        of_u = u_bar + spike_bar / (1 + (4 * (u - 1)) ** 2)
        return of_u, 0.9 * of_u


class Smooth(Function):
    """Nothing but a factor too much, beside an output that counts."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, y_bar, _):
        (x,) = ctx.saved_tensors
        return 2 * y_bar * x.cos()


class Stored(Function):
    """Returns numbers that torch stores and does not add."""

    @staticmethod
    def forward(ctx, x):
        return x.to(torch.float8_e4m3fn)

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.float()


def surrogate_of(function, case):
    (verdict,) = audit(function, [case], laws=["surrogate"]).report.of(law="surrogate")
    return verdict.finding


@pytest.mark.parametrize(
    ("function", "case", "named"),
    [
        (RoundedWeight, "(randn(4, 3), randn(2, 3))", "Is the gradient of `w` meant?"),
        (Scaled, "(randn(4, 6), randn(3, 6))", "Is the gradient of `w` meant?"),
        (Signs, "(randn(4, 6), randn(3, 6))", "Is the gradient of `w` meant? Forward jumps"),
        (InFloat8, "(randn(4, 6), randn(3, 6))", "Is the gradient of `w` meant?"),
        (LearnedStep, "(randn(4, 5), tensor(0.3))", "Is the gradient of `x` and of `step` meant?"),
        (
            Range,
            "(randn(4, 5), tensor(-0.5), tensor(1.2))",
            "of `x` and of `low` and of `width` meant?",
        ),
        (Cell, "(randn(4, 5), randn(4, 5))", "Is the gradient of `x` and of `v` meant? Output 0 is flat"),
    ],
)
def test_a_gradient_that_may_be_meant_is_asked_about(function, case, named):
    finding = surrogate_of(function, case)
    assert (finding.status, named in finding.message) == (Status.QUESTION, True), finding


@pytest.mark.parametrize("function", [RoundedWeightTwice, ScaledTwice])
def test_a_wrong_gradient_beside_it_is_wrong_and_its_cause_is_named(function):
    finding = surrogate_of(function, "(randn(4, 6), randn(3, 6))")
    assert finding.status is Status.BROKEN
    assert finding.details["may be meant"] == ["w"]
    assert "gradient of `x`" in finding.message
    assert finding.reason.evidence["arguments"] == {"x": "off by the factor 2"}


def test_an_end_of_a_range_has_its_gradient_where_the_range_clips():
    finding = surrogate_of(RangeWithoutLow, "(randn(4, 5), tensor(-0.5), tensor(1.2))")
    assert finding.status is Status.BROKEN
    assert "backward returns zeros for `low` where `x` is far below and nothing jumps" in finding.message


@pytest.mark.parametrize("function", [Smooth, Largest])
def test_what_does_not_jump_is_no_reason(function):
    assert surrogate_of(function, "(randn(4, 5),)").status is Status.BROKEN


def test_an_output_that_torch_cannot_add_is_named():
    (verdict,) = audit(Stored, ["(randn(4, 5),)"]).report.failures
    assert (verdict.law, verdict.finding.status) == ("primal", Status.ERROR)
    assert "float8_e4m3fn with a gradient" in verdict.finding.message


class ScaledBeside(Function):
    """Hands on both, and scales the gradient of one."""

    @staticmethod
    def forward(ctx, x, d):
        ctx.save_for_backward(d)
        return x.clone(), d.clone()

    @staticmethod
    def backward(ctx, x_bar, d_bar):
        (d,) = ctx.saved_tensors
        return x_bar * d, d_bar


def test_a_right_gradient_beside_a_scaled_one_is_not_asked_about():
    finding = surrogate_of(ScaledBeside, "(randn(4), rand(4) + 0.2)")
    assert finding.message.startswith("Is the gradient of `x` meant?")
