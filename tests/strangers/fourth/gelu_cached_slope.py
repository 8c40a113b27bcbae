import math

import torch


class GELUCached(torch.autograd.Function):
    """Exact GELU that computes value and slope in one pass over x."""

    @staticmethod
    def forward(ctx, x):
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        ctx.save_for_backward(cdf + x * pdf)
        return x * cdf

    @staticmethod
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        return grad_output * slope


gelu_apply = GELUCached.apply


def gelu(x):
    return gelu_apply(x)


def primal(x):
    return torch.nn.functional.gelu(x)


surrogate = primal
FUNCTION = gelu
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4),), lambda: (_x(1, 6) * 3,)]
LIMITS = ("vmap", "jvp")
DEFECT = "the slope is saved from forward without a graph, so the second derivative silently misses its part through x"
KEYWORDS = ("second", "double backward", "once_differentiable", "detached")
