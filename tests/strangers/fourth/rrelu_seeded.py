"""Randomised leaky ReLU; the slopes come from a generator that is seeded per call."""

import torch


def _slopes(x, seed, *, lower=0.1, upper=0.4):
    gen = torch.Generator(device=x.device).manual_seed(seed)
    return lower + (upper - lower) * torch.rand(x.shape, generator=gen, dtype=x.dtype, device=x.device)


class RReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seed):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, x, x * _slopes(x, seed))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slopes = torch.empty_like(x).uniform_(0.1, 0.4)
        return torch.where(x >= 0, grad, grad * slopes), None


def rrelu(x, seed):
    return RReLU.apply(x, seed)


def primal(x, seed):
    a = _slopes(x, seed)
    return x.clamp(min=0) + a * x.clamp(max=0)


surrogate = primal
FUNCTION = rrelu
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4), 11), lambda: (-_x(1, 5).abs(), 12), lambda: (_x(2, 2, 1, 2), 13)]
LIMITS = ("vmap", "jvp", "compile")
DEFECT = "backward draws new slopes, not those that forward multiplied by"
KEYWORDS = ("random", "noise", "rng", "repeat")
