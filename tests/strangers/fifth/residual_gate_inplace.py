"""Projection, a sigmoid gate, and the residual added in place."""

import torch


class SiluGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        ctx.h = h.detach()
        return h * torch.sigmoid(h)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        s = torch.sigmoid(ctx.h)
        return grad * s * (1 + ctx.h * (1 - s))


def residual_gate(x, weight):
    h = x @ weight
    y = SiluGate.apply(h)
    h += y
    return h


def primal(x, weight):
    h = x @ weight
    return h + torch.nn.functional.silu(h)


surrogate = primal
FUNCTION = residual_gate
WRT = ("x", "weight")


def _args(seed, n, i, o):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, i, generator=gen, dtype=torch.float64)
    return x, torch.randn(i, o, generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 4, 3, 2), lambda: _args(1, 1, 2, 3), lambda: _args(2, 2, 2, 2)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "the input kept on ctx is modified in place by the residual before backward reads it"
KEYWORDS = ("saved", "modified", "in place", "inplace", "ctx", "gradient")
