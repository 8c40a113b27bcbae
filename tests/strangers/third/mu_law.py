import math

import torch


class MuLaw(torch.autograd.Function):
    """Companding of speech for a device that has float32 alone; anything else is refused."""

    @staticmethod
    def forward(ctx, x, mu):
        if x.dtype != torch.float32:
            raise TypeError(f"MuLaw takes float32 only, not {x.dtype}")
        ctx.save_for_backward(x)
        ctx.mu = mu
        return x.sign() * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (ctx.mu / math.log1p(ctx.mu)) / (1 + ctx.mu * x.abs()), None


def mu_law(x, mu=255.0):
    return MuLaw.apply(x, mu)


function = mu_law
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(358)
    x = 2 * torch.rand(2, 8, generator=g) - 1
    return [((x,), {}), ((x[0],), {"mu": 15.0})]


def primal(x, mu=255.0):
    return torch.where(x >= 0, torch.log1p(mu * x.abs()), -torch.log1p(mu * x.abs())) / math.log1p(mu)


def check():
    try:
        function(torch.ones(2, dtype=torch.float64))
    except TypeError as e:
        return "float32" in str(e)
    return False


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
