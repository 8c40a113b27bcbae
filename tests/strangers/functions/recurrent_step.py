import torch
from torch import nn


class RecurrentStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, h, W):
        out = torch.tanh(x + h @ W.t())
        ctx.save_for_backward(h, W, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        h, W, out = ctx.saved_tensors
        d = grad_out * (1 - out**2)
        grad_h = d @ W
        grad_W = h.t() @ d
        return d, grad_h, grad_W


class Elman(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.W = nn.Parameter(torch.randn(hidden, hidden, dtype=torch.float64) * 0.3)

    def forward(self, xs, h):
        for x in xs:
            h = RecurrentStep.apply(x, h, self.W)
        return h


function = RecurrentStep.apply
wrt = ("x", "h", "W")


def calls():
    g = torch.Generator().manual_seed(32)
    x, h = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    W = torch.randn(3, 3, generator=g, dtype=torch.float64)
    return [((x, h, W), {}), ((x[:1], h[:1], W), {})]


def primal(x, h, W):
    return torch.tanh(x + h @ W.t())


def show():
    (x, h, W), _ = calls()[0]
    W.requires_grad_()
    (mine,) = torch.autograd.grad(function(x, h, W).sum(), W)
    (true,) = torch.autograd.grad(primal(x, h, W).sum(), W)
    return torch.allclose(mine.t(), true) and not torch.allclose(mine, true)


TRUTH = {
    "sound": False,
    "defect": "The gradient of the square weight W is transposed.",
    "rank": "wrong",
    "names": ["transpose", "transposed", "gradient of W", "W"],
    "first_law": "the gradient of W",
}
