"""Cross-correlation matrix of two embeddings over the batch (Barlow Twins)."""

import torch


class CrossCorr(torch.autograd.Function):
    @staticmethod
    def forward(ctx, za, zb):
        ctx.save_for_backward(za, zb)
        return za.t() @ zb / za.shape[0]

    @staticmethod
    def backward(ctx, grad):
        za, zb = ctx.saved_tensors
        grad = grad / grad.shape[0]
        ga = zb @ grad.t() if ctx.needs_input_grad[0] else None
        gb = za @ grad if ctx.needs_input_grad[1] else None
        return ga, gb


def cross_corr(za, zb):
    return CrossCorr.apply(za, zb)


def primal(za, zb):
    return torch.einsum("nd,ne->nde", za, zb).mean(0)


surrogate = primal
FUNCTION = cross_corr
WRT = ("za", "zb")


def _args(seed, n, d):
    gen = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(n, d, generator=gen, dtype=torch.float64) for _ in range(2))


CALLS = [lambda: _args(0, 4, 4), lambda: _args(1, 5, 3), lambda: _args(2, 2, 2)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward divides by the number of features instead of the batch size: right only for square inputs"
KEYWORDS = ("batch", "size", "square", "shape", "factor", "gradient")
