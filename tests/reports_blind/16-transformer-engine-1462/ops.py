"""GELU whose backward hands its two arguments to the derivative in the wrong order."""

from typing import Any

import torch
from torch import Tensor

_ROOT = 2**0.5


def _cdf(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / _ROOT))


def _dgelu(x: Tensor, grad: Tensor) -> Tensor:
    density = torch.exp(-0.5 * x * x) / (2 * torch.pi) ** 0.5
    return grad * (_cdf(x) + x * density)


class GELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * _cdf(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return _dgelu(grad_output, x)


class GELUMended(GELU):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return _dgelu(x, grad_output)
