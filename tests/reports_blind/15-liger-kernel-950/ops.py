"""Root-mean-square norm in bfloat16: the gradient of the weight is added up in bfloat16, row by row."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _grad_x(dy: Tensor, x: Tensor, weight: Tensor, r: Tensor) -> Tensor:
    hat = x * r
    g = (dy * weight).to(r.dtype)
    return (r * (g - hat * (g * hat).mean(-1, keepdim=True))).to(x.dtype)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
        wide = x.float() if x.dtype == torch.bfloat16 else x
        r = (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, r)
        return (wide * r).to(x.dtype) * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, r = ctx.saved_tensors
        total = torch.zeros_like(weight)
        for row in dy * (x * r).to(x.dtype):
            total = total + row
        return _grad_x(dy, x, weight, r), total, None


class RMSNormMended(RMSNorm):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, r = ctx.saved_tensors
        total = (dy.to(r.dtype) * (x * r)).sum(0)
        return _grad_x(dy, x, weight, r), total.to(weight.dtype), None
