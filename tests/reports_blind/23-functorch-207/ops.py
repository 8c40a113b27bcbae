"""Rectifier with a chosen slope at zero: the forward-mode rule returns its slope and not slope times tangent."""

from typing import Any

import torch
from torch import Tensor


class ReLUAlpha(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, alpha: float) -> Tensor:
        return x.clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        x, ctx.alpha = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def _slope(ctx: Any, x: Tensor) -> Tensor:
        return (x > 0).to(x.dtype) + ctx.alpha * (x == 0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ReLUAlpha._slope(ctx, *ctx.saved_tensors), None

    @staticmethod
    def jvp(ctx: Any, x_dot: Tensor, _: None) -> Tensor:
        return ReLUAlpha._slope(ctx, *ctx.saved_tensors)


class ReLUAlphaMended(ReLUAlpha):
    @staticmethod
    def jvp(ctx: Any, x_dot: Tensor, _: None) -> Tensor:
        return x_dot * ReLUAlpha._slope(ctx, *ctx.saved_tensors)
