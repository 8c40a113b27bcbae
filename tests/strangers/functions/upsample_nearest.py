import torch
from torch import nn


class UpsampleNearest1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.repeat_interleave(factor, dim=-1)

    @staticmethod
    def backward(ctx, grad_out):
        *lead, length = grad_out.shape
        blocks = grad_out.reshape(*lead, length // ctx.factor, ctx.factor)
        return blocks.mean(-1), None


class Upsample(nn.Module):
    def __init__(self, factor=2):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return UpsampleNearest1d.apply(x, self.factor)


def module():
    return Upsample(2)


wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(50)
    return [
        ((torch.randn(4, 3, generator=g, dtype=torch.float64),), {}),
        ((torch.randn(2, 3, 5, generator=g, dtype=torch.float64),), {}),
    ]


def primal(module, x):
    return x.repeat_interleave(module.factor, dim=-1)


def show():
    x = torch.ones(3, requires_grad=True)
    module()(x).sum().backward()
    return x.grad.tolist() == [1.0, 1.0, 1.0]  # every entry is used twice


TRUTH = {
    "sound": False,
    "defect": "The gradients of the copies of an entry are averaged, not summed, so the gradient is too small by the upsampling factor.",
    "rank": "wrong",
    "names": ["factor", "off by", "scale", "mean", "gradient of x", "half", "times"],
    "first_law": "the gradient of x",
}
