import torch
from torch import nn


class _SoftsignFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return scale * x / (1 + x.abs()) + shift

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        d = 1 + x.abs()
        dims = tuple(range(g.dim() - 1))
        gx = g * scale / d**2
        gscale = (g * x / d).sum(dims) if dims else g * x / d
        gshift = g.sum(dims) if dims else g
        return gx, gscale, gshift


class LearnedSoftsign(nn.Module):
    def __init__(self, features, dtype=None):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features, dtype=dtype))
        self.shift = nn.Parameter(torch.zeros(features, dtype=dtype))

    def forward(self, x):
        return _SoftsignFn.apply(x, self.scale, self.shift)


module = lambda: LearnedSoftsign(3, dtype=torch.float64)  # noqa: E731
wrt = ("x", "scale", "shift")


def calls():
    g = torch.Generator().manual_seed(16)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, 5, 3, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def primal(module, x):
    return module.scale * nn.functional.softsign(x) + module.shift


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
