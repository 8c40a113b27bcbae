"""Fake quantisation: what rounds to the last level gets no gradient, although it is within the range."""

from typing import Any

import torch
from torch import Tensor


class FakeQuantize(torch.autograd.Function):
    """The gradient is straight through where the rounded value is within the range, and zero beyond."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float, low: int, high: int) -> Tensor:
        q = (x / scale).round()
        ctx.save_for_backward((q > low) & (q < high))
        return q.clamp(low, high) * scale

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        (inside,) = ctx.saved_tensors
        return grad_output * inside, None, None, None


class FakeQuantizeMended(FakeQuantize):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float, low: int, high: int) -> Tensor:
        q = (x / scale).round()
        ctx.save_for_backward((q >= low) & (q <= high))
        return q.clamp(low, high) * scale
