"""Root mean square over one dim."""

import math

import torch


class RMS(torch.autograd.Function):
    @staticmethod
    def forward(x, dim):
        return x.square().mean(dim).sqrt()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, dim = inputs
        ctx.save_for_backward(x, output)
        ctx.dim = dim

    @staticmethod
    def backward(ctx, grad):
        x, rms = ctx.saved_tensors
        count = math.prod(x.shape[ctx.dim : ctx.dim + 1])
        return (grad / rms).unsqueeze(ctx.dim) * x / count, None


def rms(x, dim):
    return RMS.apply(x, dim)


def primal(x, dim):
    return torch.linalg.vector_norm(x, dim=dim) / math.sqrt(x.shape[dim])


surrogate = primal
FUNCTION = rms
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4), 1), lambda: (_x(1, 2, 5), -1), lambda: (_x(2, 3, 2, 2), -2), lambda: (_x(3, 4, 3), 0)]
LIMITS = ("vmap", "jvp")
DEFECT = "for dim=-1 the slice shape[dim:dim+1] is empty, so the gradient is not divided by the count"
KEYWORDS = ("dim", "x", "gradient", "count")
