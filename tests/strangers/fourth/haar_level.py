"""One level of the orthonormal Haar wavelet transform along the last dim."""

import math

import torch

_S = 1 / math.sqrt(2)


class HaarLevel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        even, odd = x[..., 0::2], x[..., 1::2]
        return (even + odd) * _S, (even - odd) * _S

    @staticmethod
    def backward(ctx, g_detail, g_approx):
        even = (g_approx + g_detail) * _S
        odd = (g_approx - g_detail) * _S
        return torch.stack([even, odd], -1).flatten(-2)


def haar(x):
    return HaarLevel.apply(x)


def primal(x):
    pairs = x.unflatten(-1, (-1, 2))
    return pairs.sum(-1) / math.sqrt(2), (pairs[..., 0] - pairs[..., 1]) / math.sqrt(2)


surrogate = primal
FUNCTION = haar
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 8),), lambda: (_x(1, 2),), lambda: (_x(2, 2, 2, 4),)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward takes the cotangents of its two outputs in the wrong order"
KEYWORDS = ("output", "swapped", "order", "gradient")
