"""Additive synthesis: a sum of sines with learned amplitudes and frequencies."""

import math

import torch


class HarmonicSynth(torch.autograd.Function):
    @staticmethod
    def forward(ctx, amp, freq, n, rate):
        t = torch.arange(n, dtype=freq.dtype, device=freq.device) / rate
        ctx.save_for_backward(amp, freq)
        ctx.n, ctx.rate = n, rate
        return (amp.unsqueeze(-1) * torch.sin(2 * math.pi * freq.unsqueeze(-1) * t)).sum(-2)

    @staticmethod
    def backward(ctx, grad):
        amp, freq = ctx.saved_tensors
        omega = 2 * math.pi * torch.arange(ctx.n, device=freq.device) / ctx.rate
        phase = freq.unsqueeze(-1) * omega
        g = grad.unsqueeze(-2)
        return (g * torch.sin(phase)).sum(-1), amp * (g * torch.cos(phase) * omega).sum(-1), None, None


def synth(amp, freq, n, rate):
    return HarmonicSynth.apply(amp, freq, n, rate)


def primal(amp, freq, n, rate):
    t = torch.arange(n, dtype=amp.dtype) / rate
    return torch.einsum("k,kn->n", amp, torch.sin(2 * math.pi * torch.outer(freq, t)))


surrogate = primal
FUNCTION = synth
WRT = ("amp", "freq")


def _args(seed, k, n, rate):
    gen = torch.Generator().manual_seed(seed)
    amp = torch.randn(k, generator=gen, dtype=torch.float64)
    return amp, 1 + torch.arange(1, k + 1, dtype=torch.float64) * 1.7, n, rate


CALLS = [lambda: _args(0, 3, 24, 30.0), lambda: _args(1, 1, 10, 11.0), lambda: _args(2, 2, 16, 7.0)]
LIMITS = ("vmap", "jvp")
DEFECT = "the time grid of backward is float32, so that float64 gradients are exact to seven digits only"
KEYWORDS = ("float32", "precision", "float64", "dtype", "digits", "gradient")
