import torch
from torch import nn


class FakeQuantInt8(torch.autograd.Function):
    """Simulated int8 rounding; gradient passes inside the representable range. float32 only."""

    @staticmethod
    def forward(ctx, x, scale):
        if x.dtype != torch.float32:
            raise TypeError("FakeQuantInt8 takes float32")
        ctx.save_for_backward(x)
        ctx.scale = scale
        return torch.clamp(torch.round(x / scale), -128, 127) * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        inside = (x / ctx.scale >= -128) | (x / ctx.scale <= 127)
        return grad_output * inside.float(), None


class ActQuant(nn.Module):
    def __init__(self, scale=0.02):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return FakeQuantInt8.apply(x, self.scale)


module = ActQuant
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(55)
    return [((torch.randn(4, 3, generator=g),), {}), ((3 * torch.randn(4, 6, generator=g),), {})]


def primal(module, x):
    return torch.clamp(torch.round(x / module.scale), -128, 127) * module.scale


def surrogate(module, x):
    return torch.clamp(x / module.scale, -128, 127) * module.scale


def show():
    x = torch.tensor([-9.0, 0.1, 9.0], requires_grad=True)
    module()(x).sum().backward()
    return x.grad.tolist() == [1.0, 1.0, 1.0]


TRUTH = {
    "sound": False,
    "defect": "The range mask is written with or in place of and, so it is always true and clipped values get a gradient.",
    "rank": "wrong",
    "names": ["gradient of x", "clip", "mask", "outside", "saturat", "surrogate"],
    "first_law": "the gradient of x where x is clipped",
}
