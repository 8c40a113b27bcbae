"""Uniform quantiser of activations; straight-through inside the clipping range."""

import torch
from torch import nn


class _UniformQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo, hi, bits):
        ctx.save_for_backward((x >= lo) & (x <= hi))
        step = (hi - lo) / (2**bits - 1)
        return torch.round((x.clamp(lo, hi) - lo) / step) * step + lo

    @staticmethod
    def backward(ctx, grad):
        (keep,) = ctx.saved_tensors
        return grad * keep, None, None, None


class ActQuant(nn.Module):
    def __init__(self, lo, hi, *, bits):
        super().__init__()
        self.lo, self.hi, self.bits = lo, hi, bits

    def forward(self, x):
        return _UniformQuantize.apply(x, self.lo, self.hi, self.bits)


def act_quant(x, lo, hi, bits):
    return ActQuant(lo, hi, bits=bits)(x)


def primal(x, lo, hi, bits):
    step = (hi - lo) / (2**bits - 1)
    return ((x.clamp(lo, hi) - lo) / step).round() * step + lo


def surrogate(x, lo, hi, bits):
    return x.clamp(lo, hi)


FUNCTION = act_quant
WRT = ("x",)


def _x(seed, *shape):
    return 1.5 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_x(0, 5, 4), -1.0, 1.0, 3),
    lambda: (_x(1, 9), 0.0, 2.0, 1),
    lambda: (_x(2, 2, 3, 2), -0.5, 1.25, 8),
]
LIMITS = ("vmap", "jvp")
DEFECT = ""
KEYWORDS = ()
