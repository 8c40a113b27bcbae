import torch
from torch import nn


class FastMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.x = x
        ctx.weight = weight
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = grad @ ctx.weight.t()
        if ctx.needs_input_grad[1]:
            gw = ctx.x.t() @ grad
        return gx, gw


class FastLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) / n_in**0.5)

    def forward(self, x):
        return FastMM.apply(x, self.weight)


function = FastMM.apply
wrt = ("x", "weight")


def calls():
    g = torch.Generator().manual_seed(35)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    w = torch.randn(3, 5, generator=g, dtype=torch.float64)
    return [((x, w), {}), ((x[:2], w[:, :1]), {})]


def primal(x, weight):
    return x @ weight


def show():
    """An optimizer step between forward and backward: torch refuses, this goes on silently."""
    (x, w), _ = calls()[0]
    x.requires_grad_(), w.requires_grad_()
    out, ref = function(x, w), primal(x, w)
    (true,) = torch.autograd.grad(primal(x, w).sum(), x)
    with torch.no_grad():
        w.mul_(3)
    (mine,) = torch.autograd.grad(out.sum(), x)
    try:
        torch.autograd.grad(ref.sum(), x)
        refused = False
    except RuntimeError:
        refused = True
    return refused and torch.allclose(mine, 3 * true)


TRUTH = {
    "sound": False,
    "defect": "x and weight are kept on ctx and not by save_for_backward, so a change of them in place before backward is not noticed and gives a wrong gradient.",
    "rank": "wrong",
    "names": ["save_for_backward", "ctx", "in place", "in-place", "stale", "version"],
    "first_law": "a saved tensor changed in place before backward is noticed",
}
