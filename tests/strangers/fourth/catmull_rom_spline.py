"""Catmull-Rom spline through equally spaced samples: knot i lies at start + i * spacing."""

import torch


def _cell(x, n, start, spacing):
    u = (x - start) / spacing
    i = torch.floor(u.detach()).long().clamp(1, n - 3)
    return i, u - i


def _weights(t):
    return (
        0.5 * (-t + 2 * t**2 - t**3),
        0.5 * (2 - 5 * t**2 + 3 * t**3),
        0.5 * (t + 4 * t**2 - 3 * t**3),
        0.5 * (-(t**2) + t**3),
    )


class CatmullRom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, samples, start, spacing):
        ctx.save_for_backward(x, samples)
        ctx.grid = start, spacing
        i, t = _cell(x, samples.numel(), start, spacing)
        return sum(w * samples[i + o] for o, w in zip((-1, 0, 1, 2), _weights(t), strict=True))

    @staticmethod
    def backward(ctx, grad):
        x, samples = ctx.saved_tensors
        i, t = _cell(x, samples.numel(), *ctx.grid)
        p0, p1, p2, p3 = (samples[i + o] for o in (-1, 0, 1, 2))
        slope = 0.5 * (p2 - p0) + t * (2 * p0 - 5 * p1 + 4 * p2 - p3) + 1.5 * t**2 * (3 * p1 - p0 - 3 * p2 + p3)
        g_samples = torch.zeros_like(samples)
        for o, w in zip((-1, 0, 1, 2), _weights(t), strict=True):
            g_samples = g_samples.index_add(0, i + o, grad * w)
        return grad * slope, g_samples, None, None


def spline(x, samples, start, spacing):
    return CatmullRom.apply(x, samples, start, spacing)


def primal(x, samples, start, spacing):
    i, t = _cell(x, samples.numel(), start, spacing)
    p0, p1, p2, p3 = samples[i - 1], samples[i], samples[i + 1], samples[i + 2]
    c1, c2, c3 = p2 - p0, 2 * p0 - 5 * p1 + 4 * p2 - p3, -p0 + 3 * p1 - 3 * p2 + p3
    return 0.5 * (2 * p1 + t * (c1 + t * (c2 + t * c3)))


surrogate = primal
FUNCTION = spline
WRT = ("x", "samples")


def _args(seed, n, q, start, spacing):
    gen = torch.Generator().manual_seed(seed)
    x = start + spacing * (1 + (n - 3) * torch.rand(q, generator=gen, dtype=torch.float64))
    return x, torch.randn(n, generator=gen, dtype=torch.float64), start, spacing


CALLS = [lambda: _args(0, 7, 5, 0.0, 1.0), lambda: _args(1, 6, 4, -1.0, 0.25), lambda: _args(2, 4, 3, 2.0, 3.0)]
LIMITS = ("vmap", "jvp", "half", "compile")
DEFECT = "the gradient of x lacks the chain factor 1 / spacing"
KEYWORDS = ("x", "spacing", "factor", "scale")
