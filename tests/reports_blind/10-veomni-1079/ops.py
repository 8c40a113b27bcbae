"""Mean of the losses of all ranks, weighted by their tokens: backward multiplies by the number of ranks as well."""

from typing import Any

import torch
from torch import Tensor


class ReduceLoss(torch.autograd.Function):
    """The losses of the ranks stand in one vector, so that one process can show the defect."""

    @staticmethod
    def forward(ctx: Any, losses: Tensor, tokens: Tensor, ranks: int) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.ranks = ranks
        return (losses * tokens).sum() / tokens.sum()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (tokens,) = ctx.saved_tensors
        return grad_output * ctx.ranks * tokens / tokens.sum(), None, None


class ReduceLossMended(ReduceLoss):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (tokens,) = ctx.saved_tensors
        return grad_output * tokens / tokens.sum(), None, None
