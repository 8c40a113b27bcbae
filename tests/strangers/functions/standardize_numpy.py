import numpy as np
import torch
from torch.autograd.function import once_differentiable


class Standardize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach().numpy()
        a -= a.mean(axis=1, keepdims=True)
        std = np.sqrt((a**2).mean(axis=1, keepdims=True) + 1e-8)
        out = torch.from_numpy(a / std)
        ctx.save_for_backward(out, torch.from_numpy(std))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out, std = ctx.saved_tensors
        mean_g = grad.mean(1, keepdim=True)
        mean_go = (grad * out).mean(1, keepdim=True)
        return (grad - mean_g - out * mean_go) / std


def standardize(x):
    return Standardize.apply(x)


function = standardize
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(37)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64) + 2
    return [((x,), {}), ((x[:2].repeat(1, 2),), {})]


def primal(x):
    c = x - x.mean(1, keepdim=True)
    return c / (c.square().mean(1, keepdim=True) + 1e-8).sqrt()


def show():
    (x,), _ = calls()[0]
    before = x.clone()
    function(x)
    return not torch.equal(x, before) and torch.allclose(x, before - before.mean(1, keepdim=True))


TRUTH = {
    "sound": False,
    "defect": "The numpy array shares memory with x and is centred in place, so the caller's input is changed.",
    "rank": "wrong",
    "names": ["in place", "in-place", "modif", "changes its input", "input", "mutat"],
    "first_law": "leaves its input alone",
}
