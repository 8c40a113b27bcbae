import torch
import torch.nn.functional as F
from torch import nn


class MishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        tsp = torch.tanh(F.softplus(x))
        ctx.save_for_backward(x, tsp)
        return x * tsp

    @staticmethod
    def backward(ctx, grad_output):
        x, tsp = ctx.saved_tensors
        grad = tsp + x * (1 - tsp * tsp) * torch.sigmoid(x)
        return grad_output * grad


class Mish(nn.Module):
    def forward(self, x):
        return MishFunction.apply(x)


function = MishFunction.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(44)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((3 * x[0],), {})]


def primal(x):
    return F.mish(x)


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    second = []
    for f in (function, primal):
        (d,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        second += torch.autograd.grad(d.sum(), x)
    return (second[0] - second[1]).abs().max() > 0.01


TRUTH = {
    "sound": False,
    "defect": "A value computed in forward is saved and treated as a constant in backward, so the second derivative is silently wrong.",
    "rank": "wrong",
    "names": ["second derivative", "double backward", "second order", "second-order", "once_differentiable"],
    "first_law": "the second derivative",
}
