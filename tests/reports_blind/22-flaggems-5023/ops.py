"""Operator of pairwise p-norm distances: the backward operator takes p and computes the gradient of p = 2."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op


def _distances(x: Tensor, y: Tensor, p: float) -> Tensor:
    return (x[:, None] - y[None]).abs().pow(p).sum(-1).pow(1 / p)


@custom_op("reports_blind22::cdist", mutates_args=())
def cdist(x: Tensor, y: Tensor, p: float) -> Tensor:
    return _distances(x, y, p)


@custom_op("reports_blind22::cdist_mended", mutates_args=())
def cdist_mended(x: Tensor, y: Tensor, p: float) -> Tensor:
    return _distances(x, y, p)


@custom_op("reports_blind22::cdist_backward", mutates_args=())
def cdist_backward(g: Tensor, x: Tensor, y: Tensor, p: float, dist: Tensor) -> tuple[Tensor, Tensor]:
    terms = g[..., None] * (x[:, None] - y[None]) / dist[..., None]
    return terms.sum(1), -terms.sum(0)


@custom_op("reports_blind22::cdist_backward_mended", mutates_args=())
def cdist_backward_mended(g: Tensor, x: Tensor, y: Tensor, p: float, dist: Tensor) -> tuple[Tensor, Tensor]:
    diff = x[:, None] - y[None]
    terms = g[..., None] * diff.sign() * (diff.abs() / dist[..., None]).pow(p - 1)
    return terms.sum(1), -terms.sum(0)


def _setup(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    x, y, ctx.p = inputs
    ctx.save_for_backward(x, y, output)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
    x, y, dist = ctx.saved_tensors
    return *cdist_backward(g, x, y, ctx.p, dist), None


def _backward_mended(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
    x, y, dist = ctx.saved_tensors
    return *cdist_backward_mended(g, x, y, ctx.p, dist), None


for op in (cdist, cdist_mended):
    op.register_fake(lambda x, y, p: x.new_empty(x.shape[0], y.shape[0]))
for op in (cdist_backward, cdist_backward_mended):
    op.register_fake(lambda g, x, y, p, dist: (torch.empty_like(x), torch.empty_like(y)))
cdist.register_autograd(_backward, setup_context=_setup)
cdist_mended.register_autograd(_backward_mended, setup_context=_setup)
