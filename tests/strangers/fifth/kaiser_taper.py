"""Taper frames by a Kaiser window, the windows kept in a cache."""

import torch

_WINDOWS = {}


def _window(n, beta, like):
    if n not in _WINDOWS:
        _WINDOWS[n] = torch.kaiser_window(n, periodic=False, beta=beta, dtype=torch.float64)
    return _WINDOWS[n].to(like)


class Taper(torch.autograd.Function):
    @staticmethod
    def forward(ctx, frames, beta):
        ctx.beta = beta
        return frames * _window(frames.shape[-1], beta, frames)

    @staticmethod
    def backward(ctx, grad):
        return grad * _window(grad.shape[-1], ctx.beta, grad), None


def taper(frames, beta):
    return Taper.apply(frames, beta)


def primal(frames, beta):
    n = frames.shape[-1]
    x = torch.linspace(-1, 1, n, dtype=torch.float64)
    b = torch.tensor(beta, dtype=torch.float64)
    return frames * (torch.i0(b * (1 - x * x).sqrt()) / torch.i0(b)).to(frames)


surrogate = primal
FUNCTION = taper
WRT = ("frames",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 8), 5.0), lambda: (_x(1, 2, 8), 12.0), lambda: (_x(2, 6), 3.0)]
LIMITS = ("vmap", "jvp")
DEFECT = "the cache is keyed by length only: the window of the first beta is used for every later one"
KEYWORDS = ("cache", "beta", "first", "stale", "state", "call")
