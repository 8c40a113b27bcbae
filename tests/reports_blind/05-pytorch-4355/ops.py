"""Inverse square root linear unit: backward returns its derivative without the incoming gradient."""

from typing import Any

import torch
from torch import Tensor


class ISRLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float = 1.0) -> Tensor:
        ctx.nisr = torch.rsqrt(1 + alpha * x.clamp(max=0) ** 2)
        return x * ctx.nisr

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return ctx.nisr**3, None


class ISRLUMended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float = 1.0) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return x * torch.rsqrt(1 + alpha * x.clamp(max=0) ** 2)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_output * torch.rsqrt(1 + ctx.alpha * x.clamp(max=0) ** 2) ** 3, None
