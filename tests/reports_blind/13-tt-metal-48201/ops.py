"""Clamp between two tensors: the mask of what is within the bounds has both comparisons the wrong way round."""

from typing import Any

import torch
from torch import Tensor


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        ctx.save_for_backward(x, low, high)
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, low, high = ctx.saved_tensors
        inside = (x <= low) & (x >= high)
        return grad_output * inside, grad_output * (x < low), grad_output * (x > high)


class ClampMended(Clamp):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, low, high = ctx.saved_tensors
        inside = (x >= low) & (x <= high)
        return grad_output * inside, grad_output * (x < low), grad_output * (x > high)
