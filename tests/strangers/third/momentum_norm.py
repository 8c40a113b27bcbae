import torch
from torch import nn


class ShiftScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, mean):
        ctx.save_for_backward(x, weight)
        ctx.mean = mean
        return (x - mean) * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * (x - ctx.mean)).sum(0), None


class MomentumNorm(nn.Module):
    """Subtracts the mean of the batches before this one, which is kept as a running average. x (N, C)"""

    def __init__(self, channels=3, momentum=0.1):
        super().__init__()
        g = torch.Generator().manual_seed(333)
        self.weight = nn.Parameter(1 + torch.rand(channels, generator=g, dtype=torch.float64))
        self.register_buffer("running", torch.zeros(channels, dtype=torch.float64))
        self.momentum = momentum

    def forward(self, x):
        out = ShiftScale.apply(x, self.weight, self.running)
        if self.training:
            with torch.no_grad():
                self.running.lerp_(x.mean(0), self.momentum)
        return out


module = MomentumNorm
wrt = ("x", "weight")
primal = None


def calls():
    g = torch.Generator().manual_seed(333)
    a, b = 2 + torch.randn(2, 5, 3, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def show():
    (x,), _ = calls()[0]
    m = module()
    used = m.running.clone()
    y = m(x)
    right = torch.allclose(y, (x - used) * m.weight)
    (mine,) = torch.autograd.grad(y.sum(), m.weight)
    return right and (mine - (x - used).sum(0)).abs().max().item() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The running mean is put on ctx without a copy and updated in place after forward: backward subtracts "
    "another mean than forward did.",
    "rank": "wrong",
    "names": ["running", "buffer", "in place", "modified", "gradient of weight", "state", "saved"],
    "first_law": "the gradient of weight",
}
