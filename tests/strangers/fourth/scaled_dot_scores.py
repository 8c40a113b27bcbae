import math

import torch
from torch.autograd import Function


class ScaledScores(Function):
    """Attention scores q k^T / sqrt(d)."""

    @staticmethod
    def forward(ctx, q, k):
        ctx.save_for_backward(q, k)
        return q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))

    @staticmethod
    def backward(ctx, g):
        q, k = ctx.saved_tensors
        gq = gk = None
        if ctx.needs_input_grad[0]:
            g = g / math.sqrt(q.size(-1))
            gq = g @ k
        if ctx.needs_input_grad[1]:
            gk = g.transpose(-1, -2) @ q
        return gq, gk


def scores(q, k):
    return ScaledScores.apply(q, k)


def primal(q, k):
    return torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5


surrogate = primal
FUNCTION = scores
WRT = ("q", "k")


def _args(seed, d, n, m, *batch):
    gen = torch.Generator().manual_seed(seed)
    q = torch.randn(*batch, n, d, generator=gen, dtype=torch.float64)
    return q, torch.randn(*batch, m, d, generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 4, 3, 5, 2), lambda: _args(1, 3, 2, 2), lambda: _args(2, 1, 2, 1, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "the gradient of k is not scaled where q does not require grad"
KEYWORDS = ("requires_grad", "require", "subset", "k")
