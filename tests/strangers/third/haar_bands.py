import math

import torch

ROOT = math.sqrt(0.5)


class HaarBands(torch.autograd.Function):
    """(..., n) -> the approximation and one detail band per level, coarsest first."""

    @staticmethod
    def forward(ctx, x, levels):
        if x.shape[-1] % 2**levels:
            raise ValueError(f"length {x.shape[-1]} is not a multiple of {2**levels}")
        details = []
        for _ in range(levels):
            a, b = x[..., 0::2], x[..., 1::2]
            details.append(ROOT * (a - b))
            x = ROOT * (a + b)
        return (x.clone(), *details[::-1])

    @staticmethod
    def backward(ctx, g, *details):
        for d in details:
            g = torch.stack([ROOT * (g + d), ROOT * (g - d)], -1).flatten(-2)
        return g, None


def haar_bands(x, levels=2):
    return HaarBands.apply(x, levels)


function = haar_bands
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(360)
    x = torch.randn(2, 8, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"levels": 3}), ((x[:, :6],), {"levels": 1})]


def primal(x, levels=2):
    bands = []
    for k in range(levels, 0, -1):
        block = x.unflatten(-1, (-1, 2**k)) * 2 ** (-k / 2)
        if k == levels:
            bands.append(block.sum(-1))
        bands.append(block[..., : 2 ** (k - 1)].sum(-1) - block[..., 2 ** (k - 1) :].sum(-1))
    return tuple(bands)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
