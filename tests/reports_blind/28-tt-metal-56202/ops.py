"""Group norm: the gradient of the scale takes mean and deviation from the wrong group."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float = 1e-5) -> Tensor:
        of_groups = x.reshape(len(x), groups, -1)
        mean = of_groups.mean(-1)
        rstd = (of_groups.var(-1, unbiased=False) + eps).rsqrt()
        ctx.save_for_backward(x, gamma, mean, rstd)
        hat = ((of_groups - mean[..., None]) * rstd[..., None]).view_as(x)
        return hat * gamma[:, None] + beta[:, None]

    @staticmethod
    def _slopes(ctx: Any, dy: Tensor, group_of_channel: Tensor) -> tuple[Tensor | None, ...]:
        x, gamma, mean, rstd = ctx.saved_tensors
        of_groups = x.reshape(len(x), mean.shape[1], -1)
        hat = (of_groups - mean[..., None]) * rstd[..., None]
        g = (dy * gamma[:, None]).reshape_as(of_groups)
        dx = rstd[..., None] * (g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True))
        read = (x - mean[:, group_of_channel, None]) * rstd[:, group_of_channel, None]
        return dx.view_as(x), (dy * read).sum((0, 2)), dy.sum((0, 2)), None, None

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        groups = ctx.saved_tensors[2].shape[1]
        return GroupNorm._slopes(ctx, dy, torch.arange(dy.shape[1]) % groups)


class GroupNormMended(GroupNorm):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        groups = ctx.saved_tensors[2].shape[1]
        return GroupNorm._slopes(ctx, dy, torch.arange(dy.shape[1]) // (dy.shape[1] // groups))
