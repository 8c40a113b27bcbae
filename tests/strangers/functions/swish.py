import torch
from torch import nn


class SwishImplementation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * torch.sigmoid(i)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        sigmoid_i = torch.sigmoid(i)
        return grad_output * (sigmoid_i * (1 + i * (1 - sigmoid_i)))


class MemoryEfficientSwish(nn.Module):
    def forward(self, x):
        return SwishImplementation.apply(x)


module = MemoryEfficientSwish
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(27)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((2 * x.reshape(2, 2, 3),), {})]


def primal(module, x):
    return nn.functional.silu(x)


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    (mine,) = torch.autograd.grad(module()(x).sum(), x)
    (true,) = torch.autograd.grad(primal(None, x).sum(), x)
    return (mine - true).abs().max() > 0.01


TRUTH = {
    "sound": False,
    "defect": "The output is saved where the input is meant, so the derivative is evaluated at swish(x) and not at x.",
    "rank": "wrong",
    "names": ["gradient of x", "gradient", "saved", "output instead of the input"],
    "first_law": "the gradient of x",
}
