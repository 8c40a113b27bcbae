import functools

import torch


@functools.cache
def make_branches(scales):
    branches = []
    for s in scales:

        class Branch(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale):
                y = torch.tanh(scale * x)
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, grad):
                (y,) = ctx.saved_tensors
                return grad * s * (1 - y * y), None  # noqa: B023

        branches.append(functools.partial(lambda fn, scale, x: fn.apply(x, scale), Branch, s))
    return branches


def multi_scale_tanh(x, scales=(1.0,)):
    return torch.cat([branch(x) for branch in make_branches(scales)], dim=-1)


function = multi_scale_tanh
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(339)
    x = torch.randn(3, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x,), {"scales": (0.5, 1.0, 2.0)})]


def primal(x, scales=(1.0,)):
    z = x.unsqueeze(-2) * torch.tensor(scales, dtype=x.dtype).unsqueeze(-1)
    return torch.tanh(z).flatten(-2)


def show():
    off = []
    for (x,), k in calls():
        x.requires_grad_()
        (mine,) = torch.autograd.grad(function(x, **k).sum(), x)
        (true,) = torch.autograd.grad(primal(x, **k).sum(), x)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-12 and off[1] > 1e-1


TRUTH = {
    "sound": False,
    "defect": "backward reads the loop variable of the enclosing function, which by then is the last scale: all "
    "branches but the last have a gradient of the wrong scale.",
    "rank": "wrong",
    "names": ["gradient of x", "scale", "factor", "closure", "loop"],
    "first_law": "the gradient of x",
}
