"""Mean cross entropy: forward leaves its gradient in the memory of the logits, which a layer before may have saved."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _loss_and_slopes(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logp = logits.log_softmax(-1)
    rows = torch.arange(len(target))
    slopes = logp.exp()
    slopes[rows, target] -= 1
    return -logp[rows, target].mean(), slopes / len(target)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
        loss, slopes = _loss_and_slopes(logits, target)
        logits.data.copy_(slopes)  # as the kernel does: autograd does not see the write
        ctx.save_for_backward(logits.detach())
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        return grad_output * slopes, None


class CrossEntropyMended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
        loss, slopes = _loss_and_slopes(logits, target)
        ctx.save_for_backward(slopes)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        return grad_output * slopes, None
