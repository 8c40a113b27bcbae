"""Mu-law companding of audio in [-1, 1]."""

import math

import torch


class MuLaw(torch.autograd.Function):
    @staticmethod
    def forward(x, mu):
        return torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.mu = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.mu / (math.log1p(ctx.mu) * (1 + ctx.mu * x)), None


def mu_law(x, mu):
    return MuLaw.apply(x, mu)


def primal(x, mu):
    pos = torch.log1p(mu * x.clamp(min=0)) - torch.log1p(-mu * x.clamp(max=0))
    return pos / math.log1p(mu)


surrogate = primal
FUNCTION = mu_law
WRT = ("x",)


def _x(seed, *shape):
    return 2 * torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1


CALLS = [lambda: (_x(0, 2, 6), 255.0), lambda: (_x(1, 5).abs(), 100.0), lambda: (_x(2, 4), 8.0)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = "the gradient uses x where it needs |x|, so it is wrong for negative samples"
KEYWORDS = ("x", "negative", "sign", "gradient")
