"""Functions that the tests call under a watch."""

from __future__ import annotations

import torch


class Doubled(torch.autograd.Function):
    """Right."""

    @staticmethod
    def forward(ctx, x, factor=2.0):
        ctx.factor = factor
        return factor * x

    @staticmethod
    def backward(ctx, grad):
        return ctx.factor * grad, None


class Wrong(torch.autograd.Function):
    """Its gradient is one and a half times the derivative."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad


class Cubed(torch.autograd.Function):
    """Right, and takes part in torch.func."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad
