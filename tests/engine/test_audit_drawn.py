"""What packages that were drawn by chance showed of an audit: untrue findings, and questions that hid a mistake."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.law import Rank, Status


class Routed(Function):
    """Gives a gradient to an argument that forward does not read, and half of its gradient to the other one."""

    share = 0.5

    @staticmethod
    def forward(ctx, x, unread):
        ctx.save_for_backward(x)
        return x.sin()

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        return cls.share * y_bar * x.cos(), y_bar.sum() * torch.ones(3, dtype=x.dtype)


class RoutedRightly(Routed):
    share = 1.0


class Loss(Function):
    """A loss of about 12 that is kept in float32: small steps of a float64 do not move it."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (12 + x.sin().sum() / 20).float().unsqueeze(0)

    @classmethod
    def backward(cls, ctx, y_bar):
        (x,) = ctx.saved_tensors
        return cls.factor * y_bar * x.cos() / 20


class LossTurned(Loss):
    factor = -3.0


class Heaviside(Function):
    """A step, in float32 whatever is given; the threshold learns by a kernel."""

    @staticmethod
    def forward(ctx, x, threshold):
        ctx.save_for_backward(x, threshold)
        return (x > threshold).float()

    @staticmethod
    def backward(ctx, y_bar):
        x, threshold = ctx.saved_tensors
        return torch.zeros_like(x), (-torch.exp(-((x - threshold) ** 2)).float() * y_bar).sum(0)


class Quantised(Function):
    """A learned step size with masks in float32; of a 0-d float64 they make a float32."""

    @staticmethod
    def forward(ctx, x, scale, zero):
        ctx.save_for_backward(x, scale, zero)
        return ((x / scale + zero).clamp(-3, 3).round() - zero) * scale

    @staticmethod
    def backward(ctx, y_bar):
        x, scale, zero = ctx.saved_tensors
        low, high = ((x / scale + zero) < -3).float(), ((x / scale + zero) > 3).float()
        inside, q = 1 - low - high, x / scale
        of_scale = (low * (-3 - zero) + high * (3 - zero) + inside * (-q - zero + (q + zero).round())) * y_bar
        of_zero = (low * -scale + high * -scale) * y_bar
        return y_bar * inside, of_scale.sum().expand(scale.size()), of_zero.sum().expand(zero.size())


class Kernel(Function):
    """Writes to what it gets in backward, through an in-place operation that an expanded tensor refuses."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.copy_(2 * y_bar / 2)


def verdict_of(function, call, law="surrogate"):
    (verdict,) = audit(function, [call], laws=[law], jobs=1).report.of(law=law)
    return verdict


@pytest.mark.parametrize(
    ("function", "call", "status"),
    [
        (Routed, "(randn(4), randn(3))", Status.BROKEN),
        (RoutedRightly, "(randn(4), randn(3))", Status.QUESTION),
        (Loss, "(randn(2, 3),)", Status.HOLDS),
        (LossTurned, "(randn(2, 3),)", Status.BROKEN),
    ],
)
def test_neither_an_unread_argument_nor_a_loss_in_float32_hides_a_wrong_gradient(function, call, status):
    assert verdict_of(function, call).status is status


def test_a_sum_in_float32_is_linear_to_its_digits():
    verdict = verdict_of(Heaviside, "(randn(6, 8), 0.1 * ones(8))", "cotangent_linearity")

    assert verdict.finding.rank == Rank.WASTE


def test_second_derivatives_of_another_layout_are_compared_as_float32():
    call = "(randn(4, 5), tensor(0.2), tensor(1.0))"

    assert verdict_of(Quantised, call, "cotangent_layout").status is Status.HOLDS


def test_a_write_to_an_expanded_cotangent_is_not_called_a_view():
    finding = verdict_of(Kernel, "(randn(4, 5),)", "cotangent_layout").finding

    assert finding.status is Status.BROKEN
    assert finding.likely == "backward writes to the cotangent: clone() it first"
