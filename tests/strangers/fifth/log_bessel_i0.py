"""log I0(x), the normaliser of the von Mises density, with its own second derivative."""

import torch


class BesselRatio(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        r = torch.special.i1e(x) / torch.special.i0e(x)
        ctx.save_for_backward(x, r)
        return r

    @staticmethod
    def backward(ctx, grad):
        x, r = ctx.saved_tensors
        slope = torch.where(x == 0, torch.full_like(x, 0.5), r / x)
        return grad * (1 - slope - r * r)


class LogBesselI0(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.special.i0e(x).log() + x.abs()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * BesselRatio.apply(x)


def log_bessel_i0(x):
    return LogBesselI0.apply(x)


def primal(x):
    return torch.special.i0(x).log()


surrogate = primal
FUNCTION = log_bessel_i0
WRT = ("x",)


def _x(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return 0.5 + 4 * torch.rand(*shape, generator=gen, dtype=torch.float64)


CALLS = [lambda: (_x(0, 5),), lambda: (-_x(1, 2, 3),), lambda: (_x(2, 1),)]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
