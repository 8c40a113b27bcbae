"""Soft dynamic time warping: backward adds up what comes from three sides without the weights of the soft minimum."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _softmin(*costs: Tensor, gamma: float) -> Tensor:
    return -gamma * torch.logsumexp(torch.stack([-c / gamma for c in costs]), 0)


def _table(d: Tensor, gamma: float) -> Tensor:
    n, m = d.shape
    r = d.new_full((n + 2, m + 2), torch.inf)
    r[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            r[i, j] = d[i - 1, j - 1] + _softmin(r[i - 1, j - 1], r[i - 1, j], r[i, j - 1], gamma=gamma)
    return r


def _path(d: Tensor, r: Tensor, gamma: float, *, weighted: bool) -> Tensor:
    n, m = d.shape
    e = d.new_zeros(n + 2, m + 2)
    e[n, m] = 1
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            for s, t in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                if s <= n and t <= m:
                    weight = ((r[s, t] - r[i, j] - d[s - 1, t - 1]) / gamma).exp() if weighted else 1.0
                    e[i, j] += e[s, t] * weight
    return e[1:-1, 1:-1]


class SoftDTW(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, d: Tensor, gamma: float) -> Tensor:
        r = _table(d, gamma)
        ctx.save_for_backward(d, r)
        ctx.gamma = gamma
        return r[-2, -2].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        d, r = ctx.saved_tensors
        return grad_output * _path(d, r, ctx.gamma, weighted=False), None


class SoftDTWMended(SoftDTW):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        d, r = ctx.saved_tensors
        return grad_output * _path(d, r, ctx.gamma, weighted=True), None
