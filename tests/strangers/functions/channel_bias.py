import torch
from torch import nn
from torch.autograd import Function


class ChannelBias(Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias.view(1, -1, 1, 1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0)


class BiasLayer(nn.Module):
    def __init__(self, channels, dtype=torch.float64):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels, dtype=dtype))

    def forward(self, x):
        return ChannelBias.apply(x, self.bias)


function = ChannelBias.apply
wrt = ("x", "bias")


def calls():
    g = torch.Generator().manual_seed(22)
    x = torch.randn(2, 3, 4, 4, generator=g, dtype=torch.float64)
    y = torch.randn(1, 2, 5, 3, generator=g, dtype=torch.float64)
    b = torch.randn(3, generator=g, dtype=torch.float64)
    return [((x, b), {}), ((y, b[:2]), {})]


def primal(x, bias):
    return x + bias.view(1, -1, 1, 1)


def show():
    (x, b), _ = calls()[0]
    try:
        function(x, b.requires_grad_()).sum().backward()
    except RuntimeError as e:
        return "shape" in str(e)
    return False


TRUTH = {
    "sound": False,
    "defect": "The gradient of bias is summed over the batch only, not over height and width, so backward raises a shape error.",
    "rank": "refused",
    "names": ["shape", "bias", "broadcast", "reduc", "sum", "expand"],
    "first_law": "the gradient of bias has the shape of bias",
}
