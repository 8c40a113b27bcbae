"""Amplifier stage: tanh saturation followed by an output gain."""

import torch


class Saturate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.y = y.detach()
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * (1 - ctx.y.square())


def gain_stage(x, gain):
    y = Saturate.apply(x)
    return y.mul_(gain)


def primal(x, gain):
    return gain * torch.tanh(x)


surrogate = primal
FUNCTION = gain_stage
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 5), 0.5), lambda: (_x(1, 2, 3), 1.0), lambda: (_x(2, 4), 2.5)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "the output kept for backward is scaled in place afterwards: wrong for any gain but 1"
KEYWORDS = ("output", "saved", "modified", "in place", "inplace", "gain")
