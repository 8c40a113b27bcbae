import torch
from torch import nn


class HardSwishFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (x + 3).clamp(0, 6) / 6

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        middle = (x + 3) / 6
        slope = torch.where(x > 3, torch.ones_like(x), middle)
        slope = torch.where(x < -3, torch.zeros_like(x), slope)
        return grad_output * slope


class HardSwish(nn.Module):
    def forward(self, x):
        return HardSwishFn.apply(x)


function = HardSwishFn.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(119)
    x = 5 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x - 4,), {}), ((x,), {})]


def primal(x):
    return nn.functional.hardswish(x)


def show():
    x = torch.tensor([1.0], requires_grad=True)
    function(x).sum().backward()
    return abs(x.grad.item() - 4 / 6) < 1e-6  # 5 / 6 is right


TRUTH = {
    "sound": False,
    "defect": "Between -3 and 3 the slope is (2 x + 3) / 6, backward uses (x + 3) / 6: the product rule was forgotten.",
    "rank": "wrong",
    "names": ["gradient of x", "gradient"],
    "first_law": "the gradient of x",
    "flat_everywhere": False,
}
