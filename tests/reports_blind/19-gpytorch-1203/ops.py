"""Nearest positive semidefinite matrix: the eigenvalues are clamped in place after they were saved."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class PositivePart(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh((a + a.mT) / 2)
        ctx.save_for_backward(values, vectors)
        values.clamp_min_(0)
        return vectors * values @ vectors.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        values, vectors = ctx.saved_tensors
        # The divided differences of max(t, 0); where two eigenvalues are equal, its slope.
        gap = values[:, None] - values
        kept = values.clamp(min=0)
        slope = (values > 0).to(values.dtype)[:, None]
        quotient = torch.where(gap == 0, slope, (kept[:, None] - kept) / torch.where(gap == 0, 1.0, gap))
        inner = vectors.mT @ ((grad_output + grad_output.mT) / 2) @ vectors
        return vectors @ (quotient * inner) @ vectors.mT


class PositivePartMended(PositivePart):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh((a + a.mT) / 2)
        ctx.save_for_backward(values, vectors)
        return vectors * values.clamp(min=0) @ vectors.mT
