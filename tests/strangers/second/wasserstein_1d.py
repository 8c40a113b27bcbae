import torch
from torch.autograd.function import once_differentiable


class Wasserstein1D(torch.autograd.Function):
    """Sum over the batch of the 1-Wasserstein distances between equally many samples x, y (B, N)."""

    @staticmethod
    def forward(ctx, x, y):
        xs, ix = x.sort(-1)
        ys, iy = y.sort(-1)
        ctx.save_for_backward(torch.sign(xs - ys), ix, iy)
        return (xs - ys).abs().mean(-1).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        sign, ix, iy = ctx.saved_tensors
        g = grad_loss * sign / sign.numel()
        grad_x = torch.zeros_like(g).scatter_(-1, ix, g)
        grad_y = torch.zeros_like(g).scatter_(-1, iy, -g)
        return grad_x, grad_y


function = Wasserstein1D.apply
wrt = ("x", "y")


def calls():
    g = torch.Generator().manual_seed(137)
    x, y = torch.randn(2, 4, 6, generator=g, dtype=torch.float64)
    return [((x, y), {}), ((x[:2, :3], y[:2, :3]), {})]


def primal(x, y):
    return (x.sort(-1).values - y.sort(-1).values).abs().mean(-1).sum()


def show():
    (x, y), _ = calls()[0]
    x.requires_grad_()
    (mine,) = torch.autograd.grad(function(x, y), x)
    (true,) = torch.autograd.grad(primal(x, y), x)
    return torch.allclose(4 * mine, true)


TRUTH = {
    "sound": False,
    "defect": "The value is a sum over the batch but the gradient that of the mean: it is divided by the batch size.",
    "rank": "wrong",
    "names": ["batch", "factor", "divided by", "gradient of x", "gradient of y"],
    "first_law": "the gradient of x",
}
