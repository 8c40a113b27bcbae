"""Softsign with explicit first and second derivatives (for a physics-informed net)."""

import torch


class _SoftsignBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, grad, x):
        ctx.save_for_backward(grad, x)
        return grad / (1 + x.abs()) ** 2

    @staticmethod
    def backward(ctx, gg):
        grad, x = ctx.saved_tensors
        d = 1 + x.abs()
        return gg / d**2, -gg * grad * torch.sign(x) / d**3


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return _SoftsignBackward.apply(grad, x)


def softsign(x):
    return Softsign.apply(x)


def primal(x):
    return torch.nn.functional.softsign(x)


surrogate = primal
FUNCTION = softsign
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4),), lambda: (_x(1, 5) * 10,), lambda: (_x(2, 1),)]
LIMITS = ("vmap", "jvp")
DEFECT = "the hand-written second derivative lacks the factor 2"
KEYWORDS = ("second", "double backward", "gradgrad")
