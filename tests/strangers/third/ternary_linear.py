import torch
from torch import nn


class Ternarize(torch.autograd.Function):
    """Weights to {-a, 0, a}; the gradient goes straight through."""

    @staticmethod
    def forward(ctx, w):
        size = w.abs()
        kept = size > 0.7 * size.mean()
        a = (size * kept).sum() / kept.sum()
        return a * w.sign() * kept

    @staticmethod
    def backward(ctx, grad):
        return grad


class TernaryLinear(nn.Module):
    def __init__(self, n_in=4, n_out=3):
        super().__init__()
        g = torch.Generator().manual_seed(365)
        self.weight = nn.Parameter(torch.randn(n_out, n_in, generator=g, dtype=torch.float64))
        self.bias = nn.Parameter(torch.randn(n_out, generator=g, dtype=torch.float64))

    def forward(self, x):
        return nn.functional.linear(x, Ternarize.apply(self.weight), self.bias)


module = TernaryLinear
wrt = ("x", "weight", "bias")


def calls():
    g = torch.Generator().manual_seed(366)
    x = torch.randn(5, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x.view(1, 5, 4),), {})]


def _ternary(w):
    limit = 0.7 * w.abs().mean()
    big = w[w.abs() > limit].abs()
    return torch.where(w.abs() > limit, w.sign() * big.mean(), 0.0)


def primal(model, x):
    return x @ _ternary(model.weight).T + model.bias


def surrogate(model, x):
    w = model.weight
    return x @ (w + (_ternary(w) - w).detach()).T + model.bias


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
