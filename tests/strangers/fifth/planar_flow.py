"""Planar normalising flow: f(z) and log|det J|, recomputed in backward to save memory."""

import torch
from torch.autograd.function import once_differentiable


def _planar(z, u, w, b):
    act = torch.tanh(z @ w + b)
    out = z + act.unsqueeze(-1) * u
    logdet = torch.log((1 + (1 - act.square()) * (u @ w)).abs())
    return out, logdet


class PlanarFlow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, u, w, b):
        ctx.save_for_backward(z, u, w, b)
        return _planar(z, u, w, b)

    @staticmethod
    @once_differentiable
    def backward(ctx, g_out, g_logdet):
        needs = ctx.needs_input_grad
        saved = [t.detach().requires_grad_(n) for t, n in zip(ctx.saved_tensors, needs, strict=True)]
        with torch.enable_grad():
            outs = _planar(*saved)
        wanted = [t for t in saved if t.requires_grad]
        got = iter(torch.autograd.grad(outs, wanted, (g_out, g_logdet)))
        return tuple(next(got) if n else None for n in needs)


def planar_flow(z, u, w, b):
    return PlanarFlow.apply(z, u, w, b)


def primal(z, u, w, b):
    act = torch.tanh((z * w).sum(-1) + b)
    psi = (1 - act**2).unsqueeze(-1) * w
    return z + u * act.unsqueeze(-1), torch.log((1 + psi @ u).abs())


surrogate = primal
FUNCTION = planar_flow
WRT = ("z", "u", "w", "b")


def _args(seed, n, d):
    gen = torch.Generator().manual_seed(seed)
    z = torch.randn(n, d, generator=gen, dtype=torch.float64)
    w = torch.rand(d, generator=gen, dtype=torch.float64)
    u = torch.rand(d, generator=gen, dtype=torch.float64)
    return z, u, w, torch.randn((), generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 4, 3), lambda: _args(1, 1, 2), lambda: _args(2, 3, 1)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = None
KEYWORDS = ()
