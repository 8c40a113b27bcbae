"""A Gabor atom exp(-(x/width)^2 / 2) cos(freq x) with learned width and frequency."""

import torch


class Gabor(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, freq, width):
        ctx.save_for_backward(x, freq, width)
        return torch.exp(-0.5 * (x / width).square()) * torch.cos(freq * x)

    @staticmethod
    def backward(ctx, grad):
        x, freq, width = ctx.saved_tensors
        envelope = torch.exp(-0.5 * (x / width).square())
        wave, quad = torch.cos(freq * x), torch.sin(freq.data * x)
        g_x = -grad * envelope * (x / width.square() * wave + freq * quad)
        g_freq = -(grad * envelope * x * quad).sum()
        g_width = (grad * envelope * wave * x.square()).sum() / width**3
        return g_x, g_freq, g_width


def gabor(x, freq, width):
    return Gabor.apply(x, freq, width)


def primal(x, freq, width):
    return (-(x**2) / (2 * width**2)).exp() * (freq * x).cos()


surrogate = primal
FUNCTION = gabor
WRT = ("x", "freq", "width")


def _args(seed, shape, freq, width):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=gen, dtype=torch.float64)
    return x, torch.tensor(freq, dtype=torch.float64), torch.tensor(width, dtype=torch.float64)


CALLS = [lambda: _args(0, (5,), 2.0, 0.8), lambda: _args(1, (2, 3), 0.5, 1.5)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward takes freq from .data, so that second derivatives by freq are wrong"
KEYWORDS = ("double", "second", "freq", "detach", "graph")
