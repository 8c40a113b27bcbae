"""Alpha compositing along a ray: the gradient of the opacity counts the background a second time."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _weights(alpha: Tensor) -> tuple[Tensor, Tensor]:
    passed = torch.cat([alpha.new_ones(1), (1 - alpha).cumprod(0)])
    return passed[:-1], passed[-1]


class Composite(torch.autograd.Function):
    """Front to back: the sum of T_i alpha_i c_i, and T_n of the background."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, color: Tensor, background: Tensor) -> Tensor:
        through, last = _weights(alpha)
        pixel = (through * alpha) @ color + last * background
        ctx.save_for_backward(alpha, color, background, pixel)
        return pixel

    @staticmethod
    def _slopes(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        alpha, color, _, pixel = ctx.saved_tensors
        through, last = _weights(alpha)
        weight = through * alpha
        behind = pixel - (weight[:, None] * color).cumsum(0)  # of the pixel, what lies behind each point
        grad_alpha = (through[:, None] * color - behind / (1 - alpha)[:, None]) @ g
        return grad_alpha, weight[:, None] * g, last * g

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        alpha, _, background, _ = ctx.saved_tensors
        grad_alpha, *rest = Composite._slopes(ctx, g)
        _, last = _weights(alpha)
        return grad_alpha - last / (1 - alpha) * (background @ g), *rest


class CompositeMended(Composite):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return Composite._slopes(ctx, g)
