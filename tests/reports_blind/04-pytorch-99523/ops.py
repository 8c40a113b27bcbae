"""Square whose backward differentiates a graph that forward built of a detached input."""

from typing import Any

import torch
from torch import Tensor


def square(x: Tensor) -> Tensor:
    return x**2


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        inner = x.detach().requires_grad_()
        with torch.enable_grad():
            result = square(inner)
        ctx.inner, ctx.result = inner, result
        return result.detach()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(ctx.result, ctx.inner, grad_output, create_graph=True)
        return grad


class SquareMended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return square(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            x = x if again else x.detach().requires_grad_()
            (grad,) = torch.autograd.grad(square(x), x, grad_output, create_graph=again)
        return grad
