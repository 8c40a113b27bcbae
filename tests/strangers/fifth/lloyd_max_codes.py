"""Quantise to learned levels: straight-through for x, scattered gradient for the levels, and the codes."""

import torch


class LloydMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        codes = (x.unsqueeze(-1) - levels).abs().argmin(-1)
        ctx.mark_non_differentiable(codes)
        ctx.save_for_backward(codes)
        ctx.count = levels.numel()
        return levels[codes], codes

    @staticmethod
    def backward(ctx, grad, _codes):
        (codes,) = ctx.saved_tensors
        g_levels = None
        if ctx.needs_input_grad[1]:
            g_levels = grad.new_zeros(ctx.count).index_add(0, codes.flatten(), grad.flatten())
        return grad, g_levels


def lloyd_max(x, levels):
    return LloydMax.apply(x, levels)


def primal(x, levels):
    codes = (x.unsqueeze(-1) - levels).abs().argmin(-1)
    return torch.take(levels, codes), codes


def surrogate(x, levels):
    codes = (x.detach().unsqueeze(-1) - levels.detach()).abs().argmin(-1)
    return x + levels[codes], codes


FUNCTION = lloyd_max
WRT = ("x", "levels")


def _args(seed, shape, n):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=gen, dtype=torch.float64)
    return x, torch.linspace(-2, 2, n, dtype=torch.float64)


CALLS = [lambda: _args(0, (3, 4), 5), lambda: _args(1, (7,), 2), lambda: _args(2, (2, 2, 3), 8)]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
