import torch
from torch import nn


class DoReFaQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        n = float(2**k - 1)
        ctx.save_for_backward(x)
        ctx.n = n
        return torch.round(x.clamp(0, 1) * n) / n

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad / ctx.n * ((x >= 0) & (x <= 1)).to(x.dtype), None


class QuantReLU(nn.Module):
    def __init__(self, k=2):
        super().__init__()
        self.k = k

    def forward(self, x):
        return DoReFaQuant.apply(x, self.k)


def module():
    return QuantReLU(2)


wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(114)
    x = 2 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[:, None].abs() / 2,), {})]


def primal(module, x):
    n = 2**module.k - 1
    return torch.round(x.clamp(0, 1) * n) / n


def surrogate(module, x):
    return x.clamp(0, 1)


def show():
    x = torch.tensor([0.5], requires_grad=True)
    module()(x).sum().backward()
    return abs(x.grad.item() - 1 / 3) < 1e-6


TRUTH = {
    "sound": False,
    "defect": "Inside the range the gradient is divided by the number of levels 2^k - 1, where it is meant to be passed as it is.",
    "rank": "wrong",
    "names": ["factor", "off by", "scale", "times", "gradient of x", "surrogate"],
    "first_law": "the gradient of x",
    "flat_everywhere": False,
}
