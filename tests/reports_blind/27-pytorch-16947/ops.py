"""Layer that keeps what backward needs on itself: a second call overwrites what the first one left there."""

from typing import Any

import torch
from torch import Tensor, nn


class _Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Module) -> Tensor:
        ctx.layer = layer
        layer.slope = 3 * x.detach() ** 2
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.layer.slope, None


class _CubedMended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Module) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2, None


class Cube(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return _Cubed.apply(x, self)


class CubeMended(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return _CubedMended.apply(x, self)
