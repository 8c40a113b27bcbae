import torch
from torch.autograd import Function


class RowMax(Function):
    @staticmethod
    def forward(ctx, x):
        out = x.amax(dim=1, keepdim=True)
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, out = ctx.saved_tensors
        return grad_out * (x == out).to(x.dtype)


def row_max(x):
    return RowMax.apply(x)


function = row_max
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(28)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    counts = torch.tensor([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    return [((x,), {}), ((counts,), {})]


def primal(x):
    return x.amax(dim=1, keepdim=True)


def show():
    x = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    row_max(x).sum().backward()
    # moving all entries up by d moves the maximum by d, not by 4 d
    return x.grad.sum().item() == 4.0


TRUTH = {
    "sound": False,
    "defect": "Where several entries tie for the maximum, each of them gets the whole gradient, which is neither one subgradient nor their mean.",
    "rank": "wrong",
    "names": ["tie", "ties", "equal", "kink", "gradient of x"],
    "first_law": "the gradient of x at ties",
}
