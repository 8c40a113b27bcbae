import torch
import torch.nn.functional as F


class InplaceELU(torch.autograd.Function):
    """ELU that overwrites its input; the derivative is written in terms of the output."""

    @staticmethod
    def forward(ctx, x, alpha):
        F.elu_(x, alpha)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return x

    @staticmethod
    def backward(ctx, grad_output):
        out, = ctx.saved_tensors
        slope = torch.where(out > 0, torch.ones_like(out), out + ctx.alpha)
        return grad_output * slope, None


def elu_(x, alpha=1.0):
    """x must not be a leaf that requires grad, as for torch's own in-place functions."""
    return InplaceELU.apply(x, alpha)


function = elu_
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(13)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    y = torch.randn(6, generator=g, dtype=torch.float64)
    return [((x,), {}), ((y, 0.5), {})]


def primal(x, alpha=1.0):
    return F.elu(x, alpha)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
