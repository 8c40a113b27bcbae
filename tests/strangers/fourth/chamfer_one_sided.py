"""Squared distance of every point of `a` to its nearest point of `b` (point clouds, batched)."""

import torch


class NearestSquared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        d2 = (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(-1)
        best, idx = d2.min(dim=2)
        ctx.save_for_backward(a, b, idx)
        return best

    @staticmethod
    def backward(ctx, grad):
        a, b, idx = ctx.saved_tensors
        bsz, m, dim = b.shape
        near = b.gather(1, idx.unsqueeze(-1).expand(-1, -1, dim))
        ga = 2 * grad.unsqueeze(-1) * (a - near)
        flat = torch.zeros(bsz * m, dim, dtype=b.dtype, device=b.device)
        gb = flat.index_add(0, idx.reshape(-1), -ga.reshape(-1, dim)).view(bsz, m, dim)
        return ga, gb


def nearest_squared(a, b):
    return NearestSquared.apply(a, b)


def primal(a, b):
    return (a[:, :, None] - b[:, None]).pow(2).sum(-1).amin(2)


surrogate = primal
FUNCTION = nearest_squared
WRT = ("a", "b")


def _args(seed, bsz, n, m):
    gen = torch.Generator().manual_seed(seed)
    a = torch.randn(bsz, n, 3, generator=gen, dtype=torch.float64)
    return a, torch.randn(bsz, m, 3, generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 1, 4, 3), lambda: _args(1, 3, 4, 2), lambda: _args(2, 2, 1, 5)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = "the gradient of b is scattered without the batch offset: everything lands in the first cloud"
KEYWORDS = ("b", "batch", "gradient")
