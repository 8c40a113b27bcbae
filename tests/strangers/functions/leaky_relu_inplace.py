import torch
from torch import nn


class LeakyReLUInplace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        factor = torch.where(x > 0, torch.ones_like(x), torch.full_like(x, slope))
        ctx.save_for_backward(factor)
        x.mul_(factor)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (factor,) = ctx.saved_tensors
        return grad_output * factor, None


class ABNAct(nn.Module):
    def __init__(self, slope=0.01):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return LeakyReLUInplace.apply(x, self.slope)


function = LeakyReLUInplace.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(41)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x, 0.01), {}), ((x[0], 0.2), {})]


def primal(x, slope):
    return nn.functional.leaky_relu(x, slope)


def show():
    leaf = torch.tensor([-1.0, 2.0], requires_grad=True)
    function(leaf, 0.1)  # torch's own leaky_relu_ refuses a leaf
    hidden = torch.tensor([-1.0, 2.0], requires_grad=True) * 1.0
    function(hidden, 0.1)
    # hidden was overwritten, but its history does not know about it
    return leaf.tolist()[0] != -1.0 and type(hidden.grad_fn).__name__ == "MulBackward0"


TRUTH = {
    "sound": False,
    "defect": "x is overwritten in place without mark_dirty, so autograd does not know that x has changed.",
    "rank": "wrong",
    "names": ["mark_dirty", "in place", "in-place", "modif", "dirty", "mutat", "changes its input"],
    "first_law": "leaves its input alone, or marks it dirty",
}
