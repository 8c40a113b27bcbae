"""A factor that is a size of an argument is told as that size: what it is moves with it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradspec import audit


class Off(torch.autograd.Function):
    """A mean of squares over a dimension, or over all, whose gradient is off by a factor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return (x * x).mean()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.factor(x) * grad * 2 * x / x.numel(), None


def a_mean(x: Tensor) -> float:
    return x.numel()


def a_mean_of_rows(x: Tensor) -> float:
    return 1 / x.shape[0]


def a_scale_of_attention(x: Tensor) -> float:
    return x.shape[-1] ** 0.5


def a_variance(x: Tensor) -> float:
    return x.shape[-1] / (x.shape[-1] - 1)


def a_number(x: Tensor) -> float:
    return 12.0


def plain(x, factor):
    return (x * x).mean()


@pytest.mark.parametrize("reference", [plain, None], ids=["reference", "alone"])
@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (a_mean, "off by the factor 12, which is `x.numel()`"),
        (a_mean_of_rows, "which is `1 / x.shape[0]`"),
        (a_scale_of_attention, "off by the factor 2, which is `x.shape[1] ** 0.5`"),
        (a_variance, "which is `x.shape[1] / (x.shape[1] - 1)`"),
    ],
)
def test_what_a_factor_is_of_a_size_is_said(factor, said, reference):
    (cause,) = causes(factor, reference)
    assert said in cause


def test_a_number_that_is_a_size_by_chance_is_not_called_one():
    (cause,) = causes(a_number, plain)
    assert "off by the factor 12" in cause
    assert "which is" not in cause


class MaskedMean(torch.autograd.Function):
    """A mean over what a mask or an index leaves, whose gradient is that of a mean over all."""

    @staticmethod
    def forward(ctx, x, chosen, ignored):
        keep = chosen if ignored is None else chosen != ignored
        ctx.save_for_backward(x, keep)
        return (x * x * keep).sum() / keep.sum()

    @staticmethod
    def backward(ctx, grad):
        x, keep = ctx.saved_tensors
        return grad * 2 * x * keep / x.numel(), None, None


def masked_mean(x, chosen, ignored):
    keep = chosen if ignored is None else chosen != ignored
    return (x * x * keep).sum() / keep.sum()


@pytest.mark.parametrize("reference", [masked_mean, None], ids=["reference", "alone"])
@pytest.mark.parametrize(
    ("chosen", "ignored", "said"),
    [
        (torch.tensor([True, False, True, True, True]), None, "which is `chosen.float().mean()`"),
        (torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0]), None, "which is `chosen.float().mean()`"),
        (torch.tensor([3, -100, 0, 2, -100]), -100, "which is `(chosen != ignored).float().mean()`"),
    ],
)
def test_what_a_mask_leaves_is_said(chosen, ignored, said, reference):
    case = torch.randn(5, dtype=torch.float64), chosen, ignored
    laws = ["vjp"] if reference else ["surrogate"]
    (found,) = audit(MaskedMean, [case], reference=reference, laws=laws, wrt=("x",)).report.violations
    assert said in found.finding.likely


def causes(factor, reference):
    x = torch.randn(3, 4, dtype=torch.float64)
    laws = ["vjp"] if reference else ["surrogate"]
    report = audit(Off, [(x, factor)], reference=reference, laws=laws).report
    return [v.finding.likely for v in report.violations]
