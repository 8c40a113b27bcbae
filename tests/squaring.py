"""A right Function that does something beside what it computes."""

from __future__ import annotations

from collections.abc import Callable

from torch.autograd import Function


def squaring(beside: Callable[[], object]) -> type[Function]:
    """Return a Function that squares its argument, and calls something in forward."""

    class Squaring(Function):
        @staticmethod
        def forward(ctx, x):
            beside()
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, y_bar):
            return 2 * ctx.saved_tensors[0] * y_bar

    return Squaring
