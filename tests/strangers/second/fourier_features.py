import math

import torch


class FourierFeatures(torch.autograd.Function):
    """NeRF positional encoding: (..., D) -> (..., D, 2 n), sin and cos of 2^k pi x."""

    @staticmethod
    def forward(ctx, x, n):
        bands = torch.tensor([math.pi * 2.0**k for k in range(n)], device=x.device)
        ctx.save_for_backward(x, bands)
        phase = x.unsqueeze(-1) * bands
        return torch.cat([torch.sin(phase), torch.cos(phase)], -1)

    @staticmethod
    def backward(ctx, grad):
        x, bands = ctx.saved_tensors
        phase = x.unsqueeze(-1) * bands
        g_sin, g_cos = grad.chunk(2, -1)
        return ((g_sin * torch.cos(phase) - g_cos * torch.sin(phase)) * bands).sum(-1), None


def fourier_features(x, n=4):
    return FourierFeatures.apply(x, n)


function = fourier_features
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(150)
    x = torch.rand(3, 2, generator=g, dtype=torch.float64)
    return [((x,), {}), ((10 * x[0],), {"n": 8})]


def primal(x, n=4):
    phase = math.pi * x[..., None] * 2 ** torch.arange(n, dtype=x.dtype)
    return torch.cat([phase.sin(), phase.cos()], -1)


def show():
    (x,), kw = calls()[1]
    out = function(x, **kw)
    return out.dtype == torch.float64 and (out - primal(x, **kw)).abs().max() > 1e-6


TRUTH = {
    "sound": False,
    "defect": "The frequencies are made in the default dtype, so a float64 input is encoded with the accuracy of "
    "float32.",
    "rank": "wrong",
    "names": ["float32", "precision", "dtype", "accuracy"],
    "first_law": "the values in float64",
}
