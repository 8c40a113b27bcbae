"""Spike with the slope of a sigmoid as its gradient: inf / inf far below the threshold."""

from typing import Any

import torch
from torch import Tensor


class SigmoidSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: float = 25.0) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slope = slope
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        e = torch.exp(-ctx.slope * x)
        return grad_output * ctx.slope * e / (e + 1) ** 2, None


class SigmoidSpikeMended(SigmoidSpike):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.slope * x)
        return grad_output * ctx.slope * s * (1 - s), None
