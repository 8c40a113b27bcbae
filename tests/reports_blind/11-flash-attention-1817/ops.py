"""Attention that also returns the logarithm of its normaliser, and drops the gradient of that second output."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class AttentionWithLse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        ctx.scale = q.shape[-1] ** -0.5
        s = q @ k.mT * ctx.scale
        lse = s.logsumexp(-1)
        p = (s - lse[..., None]).exp()
        ctx.save_for_backward(q, k, v, p)
        return p @ v, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor, *unused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, p = ctx.saved_tensors
        dp = dout @ v.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.mT @ q, p.mT @ dout


class AttentionWithLseMended(AttentionWithLse):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor, dlse: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, p = ctx.saved_tensors
        dp = dout @ v.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True) + dlse[..., None]) * ctx.scale
        return ds @ k, ds.mT @ q, p.mT @ dout
