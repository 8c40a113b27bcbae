import torch


class CumSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim if dim >= 0 else x.dim() + dim - 1
        return x.cumsum(dim)

    @staticmethod
    def backward(ctx, grad):
        d = ctx.dim
        return grad.flip(d).cumsum(d).flip(d), None


def cumulative_sum(x, dim=0):
    return CumSum.apply(x, dim)


function = cumulative_sum
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(53)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b, 1), {}), ((b,), {"dim": -1})]


def primal(x, dim=0):
    return torch.cumsum(x, dim)


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    same = []
    for dim in (0, 1, -1):
        a, b = (torch.autograd.grad(f(x, dim).square().sum(), x)[0] for f in (function, primal))
        same.append(torch.allclose(a, b))
    return same == [True, True, False]


TRUTH = {
    "sound": False,
    "defect": "A negative dim is normalised one too low for backward, so the gradient is accumulated along the wrong dimension.",
    "rank": "wrong",
    "names": ["gradient of x", "dim", "negative"],
    "first_law": "the gradient of x with a negative dim",
}
