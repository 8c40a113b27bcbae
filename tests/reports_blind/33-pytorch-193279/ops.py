"""Loss of a rounded vector, differentiated by torch.func.grad: compiled, the straight-through gradient is lost."""

from typing import Any

import torch
from torch import Tensor


class Round(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output


def rounded_loss_gradient(x: Tensor) -> Tensor:
    return torch.func.grad(lambda t: Round.apply(t).square().sum())(x)


def rounded_loss_gradient_mended(x: Tensor) -> Tensor:
    return torch.func.grad(lambda t: (t + (t.round() - t).detach()).square().sum())(x)
