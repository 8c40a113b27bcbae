"""Attention whose backward kernel reads the memory of its cotangent row by row, whatever its strides are."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _as_the_kernel_reads(t: Tensor) -> Tensor:
    memory = torch.empty(0, dtype=t.dtype).set_(t.detach().untyped_storage())
    return memory[(t.storage_offset() + torch.arange(t.numel())) % len(memory)].view(t.shape)


def _backward_kernel(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Tensor, scale: float) -> tuple[Tensor, ...]:
    dout = _as_the_kernel_reads(dout)
    dp = dout @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
    return ds @ k, ds.mT @ q, p.mT @ dout


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        ctx.scale = q.shape[-1] ** -0.5
        p = (q @ k.mT * ctx.scale).softmax(-1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor, ...]:
        return _backward_kernel(dout, *ctx.saved_tensors, ctx.scale)


class AttentionMended(Attention):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor, ...]:
        return _backward_kernel(dout.contiguous(), *ctx.saved_tensors, ctx.scale)
