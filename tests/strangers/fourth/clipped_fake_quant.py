"""Fake quantisation with a clipped straight-through estimator."""

import torch


class FakeQuant(torch.autograd.Function):
    lo = None
    hi = None

    @staticmethod
    def forward(ctx, x, lo, hi, levels):
        FakeQuant.lo, FakeQuant.hi = lo, hi
        ctx.save_for_backward(x)
        step = (hi - lo) / (levels - 1)
        return lo + step * torch.round((x.clamp(lo, hi) - lo) / step)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inside = (x >= FakeQuant.lo) & (x <= FakeQuant.hi)
        return grad * inside, None, None, None


def fake_quant(x, lo, hi, levels):
    return FakeQuant.apply(x, lo, hi, levels)


def primal(x, lo, hi, levels):
    step = (hi - lo) / (levels - 1)
    return lo + step * torch.round((x.clamp(lo, hi) - lo) / step)


def surrogate(x, lo, hi, levels):
    return torch.clamp(x, lo, hi)


FUNCTION = fake_quant
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_x(0, 4, 5), -1.0, 1.0, 16),
    lambda: (_x(1, 12), -0.25, 0.25, 4),
    lambda: (_x(2, 3, 3), 0.0, 3.0, 2),
]
LIMITS = ("vmap", "jvp", "compile")
DEFECT = "the range is kept on the class, so a backward that comes after another forward uses the other call's range"
KEYWORDS = ("state", "class", "interleaved", "another call")
