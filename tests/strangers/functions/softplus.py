import torch
from torch import nn
from torch.autograd import Function


class Log1pExp(Function):
    """log(1 + exp(x)) without overflow"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return torch.sigmoid(x)


class SafeSoftplus(nn.Module):
    def forward(self, x):
        return Log1pExp.apply(x)


function = Log1pExp.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(25)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((30 * x[0],), {})]


def primal(x):
    return torch.logaddexp(x, torch.zeros_like(x))


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    (once,) = torch.autograd.grad(function(x).sum(), x)
    (thrice,) = torch.autograd.grad((3 * function(x)).sum(), x)
    return torch.equal(once, thrice)


TRUTH = {
    "sound": False,
    "defect": "backward returns the local derivative and forgets to multiply by grad_output.",
    "rank": "wrong",
    "names": ["grad_output", "grad output", "incoming gradient", "upstream", "ignores", "linear"],
    "first_law": "backward is linear in grad_output, the gradient of x",
}
