"""What a backward does with cotangents of one sign, and what no reading of it says."""

import pytest
import torch
from torch.autograd import Function

from gradspec import audit
from gradspec.findings import findings


class LogSum(Function):
    """The logarithm of a running sum of exponentials, whose backward takes the logarithm of its cotangent."""

    @staticmethod
    def forward(ctx, x):
        y = x.logcumsumexp(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, y_bar):
        x, y = ctx.saved_tensors
        return ((y_bar.clamp(min=0).log() - y).flip(-1).logcumsumexp(-1).flip(-1) + x).exp()


class LogSumOfBothSigns(LogSum):
    @staticmethod
    def backward(ctx, y_bar):
        return LogSum.backward(ctx, y_bar) - LogSum.backward(ctx, -y_bar)


@pytest.mark.parametrize(("function", "is_told"), [(LogSum, True), (LogSumOfBothSigns, False)])
def test_a_backward_that_is_right_for_cotangents_of_one_sign_says_so(function, is_told):
    report = audit(function, ["(randn(2, 3),)"], laws=["surrogate", "cotangent_linearity"]).report

    said = [one.verdict.finding.likely for one in findings(report)]
    assert (
        said
        == ["backward is linear where no number of the cotangent is negative, and does otherwise with negative ones"]
        * is_told
    )


class Delayed(Function):
    """A recursive filter, whose backward rolls its output in place of delaying it."""

    @staticmethod
    def forward(ctx, x, a):
        y = delayed_sum(x, a)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        a, y = ctx.saved_tensors
        lam = delayed_sum(grad.flip(-1), a).flip(-1)
        return lam, -(lam * y.roll(1, -1)).sum()


def delayed_sum(x, a):
    y = [x[..., 0]]
    for k in range(1, x.shape[-1]):
        y.append(x[..., k] - a * y[-1])
    return torch.stack(y, -1)


def test_no_reading_asks_whether_two_results_of_arithmetic_are_equal():
    (found,) = findings(audit(Delayed, ["(randn(2, 6), tensor(-0.5))"], laws=["surrogate"]).report)

    assert found.verdict.finding.likely
    assert "!=" not in found.verdict.finding.likely
