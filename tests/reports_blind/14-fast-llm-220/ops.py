"""Root-mean-square norm that saves its output only: the normalised input is the output over the weight, 0 / 0."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _slopes(dy: Tensor, hat: Tensor, weight: Tensor, r: Tensor) -> tuple[Tensor, Tensor, None]:
    g = dy * weight
    dx = r * (g - hat * (g * hat).mean(-1, keepdim=True))
    return dx, (dy * hat).flatten(0, -2).sum(0), None


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
        r = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        y = x * r * weight
        ctx.save_for_backward(y, weight, r)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        y, weight, r = ctx.saved_tensors
        return _slopes(dy, y / weight, weight, r)


class RMSNormMended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
        r = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, r)
        return x * r * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, r = ctx.saved_tensors
        return _slopes(dy, x * r, weight, r)
