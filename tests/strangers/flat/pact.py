import torch
from torch import nn
from torch.autograd.function import once_differentiable


class PACTFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, k):
        ctx.save_for_backward(x, alpha)
        y = torch.minimum(x.clamp(min=0), alpha)
        scale = (2**k - 1) / alpha
        return torch.round(y * scale) / scale

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, alpha = ctx.saved_tensors
        grad_alpha = (gy * (x >= alpha).to(gy.dtype)).sum().view_as(alpha)
        clipped = (x >= 0) | (x < alpha)
        grad_x = gy * (~clipped).to(gy.dtype)
        return grad_x, grad_alpha, None


class PACT(nn.Module):
    def __init__(self, k=4, alpha=1.5):
        super().__init__()
        self.k = k
        self.alpha = nn.Parameter(torch.tensor(alpha, dtype=torch.float64))

    def forward(self, x):
        return PACTFunction.apply(x, self.alpha, self.k)


module = PACT
wrt = ("x", "alpha")


def calls():
    g = torch.Generator().manual_seed(105)
    x = 2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((torch.cat([x, -x]),), {})]


def primal(module, x):
    y = torch.minimum(x.clamp(min=0), module.alpha)
    scale = (2**module.k - 1) / module.alpha
    return torch.round(y * scale) / scale


def surrogate(module, x):
    return torch.where(x >= module.alpha, module.alpha, x.clamp(min=0))


def show():
    x = torch.tensor([0.3, 1.0, -1.0, 3.0], dtype=torch.float64, requires_grad=True)
    module()(x).sum().backward()
    return not x.grad.any()


TRUTH = {
    "sound": False,
    "defect": "The mask of x is always false, so the gradient of x is zero also for 0 <= x < alpha.",
    "rank": "wrong",
    "names": ["zero", "gradient of x", "flat", "dead", "mask", "surrogate"],
    "first_law": "the gradient of x",
    "flat_everywhere": True,
}
