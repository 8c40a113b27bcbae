"""Ricker wavelets of given peak frequency and delay, broadcast over any shapes."""

import math

import torch


class Ricker(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, freq, delay):
        ctx.save_for_backward(t, freq, delay)
        a = (math.pi * freq * (t - delay)).square()
        return (1 - 2 * a) * torch.exp(-a)

    @staticmethod
    def backward(ctx, grad):
        t, freq, delay = ctx.saved_tensors
        lag = t - delay
        a = (math.pi * freq * lag).square()
        outer = grad * (2 * a - 3) * torch.exp(-a) * 2 * math.pi**2 * freq * lag
        g_t = outer * freq
        grads = (g_t, outer * lag, -g_t)
        return tuple(
            g.sum_to_size(v.shape) if need else None
            for g, v, need in zip(grads, (t, freq, delay), ctx.needs_input_grad, strict=True)
        )


def ricker(t, freq, delay):
    return Ricker.apply(t, freq, delay)


def primal(t, freq, delay):
    u = math.pi * freq * (t - delay)
    return (1 - 2 * u**2) * torch.exp(-(u**2))


surrogate = primal
FUNCTION = ricker
WRT = ("t", "freq", "delay")


def _args(seed, t_shape, f_shape, d_shape):
    gen = torch.Generator().manual_seed(seed)
    t = torch.rand(t_shape, generator=gen, dtype=torch.float64)
    freq = 0.5 + torch.rand(f_shape, generator=gen, dtype=torch.float64)
    return t, freq, torch.rand(d_shape, generator=gen, dtype=torch.float64)


CALLS = [
    lambda: _args(0, (6,), (2, 1), (2, 1)),
    lambda: _args(1, (4,), (), (3, 1)),
    lambda: _args(2, (2, 3), (2, 3), (3,)),
]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
