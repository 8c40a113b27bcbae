"""A reading that only empties a mask is no cause, and the numbers at which a gradient is wrong are named."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.nn.functional import embedding_bag

from gradspec import audit
from gradspec.explain._left_out import terms
from gradspec.findings import findings


class Scaled(Function):
    """`x` over its length along the last dimension, and `x` itself near zero."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return scaled(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            (x_bar,) = torch.autograd.grad(scaled(at), at, y_bar)
        small = (x * x).sum(-1, keepdim=True) < 1e-6
        return x_bar.masked_fill(small, 0.0)


def scaled(x):
    size = (x * x).sum(-1, keepdim=True)
    return torch.where(size < 1e-6, x, x * (1 + size).rsqrt())


class WrongBelow(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return below(x)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        slope = torch.where(x < -0.7, x.sin() + x.square().exp().log1p(), 1.0)
        return y_bar * slope


def below(x):
    return torch.where(x < -0.7, x.exp() - 0.7, x)


class Bags(Function):
    """A mean that counts the padding in backward."""

    @staticmethod
    def forward(ctx, weight, indices, offsets, padding_idx=None):
        ctx.save_for_backward(indices, offsets)
        ctx.shape, ctx.padding = weight.shape, padding_idx
        return bags(weight, indices, offsets, padding_idx)

    @staticmethod
    def backward(ctx, y_bar):
        indices, offsets = ctx.saved_tensors
        ends = torch.cat([offsets[1:], offsets.new_tensor([len(indices)])])
        lengths = ends - offsets
        rows = (y_bar / lengths[:, None]).repeat_interleave(lengths, 0)
        if ctx.padding is not None:
            rows = rows * (indices != ctx.padding)[:, None]
        return y_bar.new_zeros(ctx.shape).index_add_(0, indices, rows), None, None, None


def bags(weight, indices, offsets, padding_idx=None):
    return embedding_bag(indices, weight, offsets, mode="mean", padding_idx=padding_idx)


AT_ZERO = "(tensor([[0.0, 0.0, 0.0], [0.4, -0.2, 0.9]], requires_grad=True),)"
PADDED = "(randn(6, 3, requires_grad=True), tensor([1, 0, 2, 5, 1, 0, 0]), tensor([0, 3, 5]), 0)"


@pytest.mark.parametrize("with_reference", [True, False], ids=["reference", "alone"])
@pytest.mark.parametrize(
    ("function", "reference", "call", "words"),
    [
        (Scaled, scaled, AT_ZERO, "right with `x_bar` in place of `x_bar.masked_fill(small, 0.0)`"),
        (WrongBelow, below, "(2 * randn(3, 4),)", "is below a bound between -"),
        pytest.param(
            *(Bags, bags, PADDED),
            "right where `padding_idx` is None, as where it is left out, and wrong where it is given",
            marks=pytest.mark.slow,  # every reading is tried before
        ),
    ],
    ids=["mask", "bound", "default"],
)
def test_the_cause_is_the_mask_the_bound_or_the_option(function, reference, call, words, with_reference):
    how: dict[str, Any] = {"reference": reference} if with_reference else {}
    (found, *_) = findings(audit(function, [call], laws=["vjp", "surrogate"], jobs=1, **how).report)

    assert words in found.verdict.finding.likely


def test_no_reading_repeats_a_shape():
    (method,) = ast.parse("def backward(ctx, lengths, y_bar):\n    return y_bar.new_zeros(ctx.shape)").body
    assert isinstance(method, ast.FunctionDef)
    tried = terms(method, method.body[0], 1)

    tried(torch.Size([6, 3]), [torch.tensor(5), torch.ones(3)])
    assert tried.worth_trying() == []
    tried.calls = 0
    tried(torch.tensor(6.0), [torch.tensor(5), torch.ones(3)])
    assert len(tried.worth_trying()) > 20
