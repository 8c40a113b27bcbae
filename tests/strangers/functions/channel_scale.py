import torch
from torch import nn


class ScaleFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gw = (grad * x).reshape(-1, weight.numel()).sum(0) if ctx.needs_input_grad[1] else None
        return grad * weight, gw


class ChannelScale(nn.Module):
    """LayerScale, as in CaiT"""

    def __init__(self, channels, init=0.1):
        super().__init__()
        self.weight = torch.full((channels,), init, dtype=torch.float64, requires_grad=True)

    def forward(self, x):
        return ScaleFn.apply(x, self.weight)


module = lambda: ChannelScale(3)  # noqa: E731
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(56)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x.reshape(2, 2, 3),), {})]


def primal(module, x):
    return x * module.weight


def show():
    m = module()
    return list(m.parameters()) == [] and not m.state_dict() and m.weight.requires_grad


TRUTH = {
    "sound": False,
    "defect": "weight is a plain tensor and not an nn.Parameter, so parameters() and state_dict() miss it: it is neither trained nor saved.",
    "rank": "wrong",
    "names": ["parameter", "registered", "state_dict", "nn.Parameter", "weight"],
    "first_law": "every trained tensor of the module is a parameter",
}
