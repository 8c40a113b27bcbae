"""Soft top-k by coordinate descent: the gradient of the last threshold, a number for a row, is not summed over it."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _steps(s: Tensor, k: int, steps: int, eps: float) -> tuple[list[Tensor], list[Tensor]]:
    a, b = [], [-s]
    for _ in range(steps):
        a.append(eps * (math.log(k) - ((s + b[-1]) / eps).logsumexp(-1, keepdim=True)))
        b.append(-(s + a[-1]).clamp(min=0))
    return a, b


class CoordinateDescent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, s: Tensor, k: int, steps: int, eps: float) -> Tensor:
        a, b = _steps(s, k, steps, eps)
        y = ((s + a[-1] + b[-1]) / eps).exp()
        ctx.save_for_backward(s, y)
        ctx.rest = k, steps, eps
        return y

    @staticmethod
    def _descend(ctx: Any, ds: Tensor, da: Tensor) -> Tensor:
        """From the last step to the first, with the gradients of `s` and of the last `a` in hand."""
        s, _ = ctx.saved_tensors
        k, steps, eps = ctx.rest
        a, b = _steps(s, k, steps, eps)
        db = ds.clone()
        for i in reversed(range(steps)):
            through = -db * (s + a[i] > 0)
            ds, da = ds + through, da + through.sum(-1, keepdim=True)
            db = -da * ((s + b[i]) / eps).softmax(-1)
            ds, da = ds + db, torch.zeros_like(da)
        return ds - db

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        ds = grad_output * ctx.saved_tensors[1] / ctx.rest[-1]
        return CoordinateDescent._descend(ctx, ds, ds), None, None, None


class CoordinateDescentMended(CoordinateDescent):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        ds = grad_output * ctx.saved_tensors[1] / ctx.rest[-1]
        return CoordinateDescent._descend(ctx, ds, ds.sum(-1, keepdim=True)), None, None, None
