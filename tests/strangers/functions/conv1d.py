import torch
import torch.nn.functional as F
from torch.nn.grad import conv1d_input, conv1d_weight


class MyConv1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, stride, padding):
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv1d(x, weight, bias, stride=stride, padding=padding)

    @staticmethod
    def backward(ctx, grad_out):
        x, weight = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = conv1d_input(x.shape, weight, grad_out, ctx.stride, ctx.padding)
        if ctx.needs_input_grad[1]:
            gw = conv1d_weight(x, weight.shape, grad_out, ctx.stride, ctx.padding)
        if ctx.needs_input_grad[2]:
            gb = grad_out.sum(dim=(0, 2))
        return gx, gw, gb, None, None


def conv1d(x, weight, bias=None, *, stride=1, padding=0):
    return MyConv1d.apply(x, weight, bias, stride, padding)


function = conv1d
wrt = ("x", "weight", "bias")


def calls():
    g = torch.Generator().manual_seed(15)
    x = torch.randn(2, 3, 8, generator=g, dtype=torch.float64)
    w = torch.randn(4, 3, 3, generator=g, dtype=torch.float64)
    b = torch.randn(4, generator=g, dtype=torch.float64)
    return [((x, w, b), {}), ((x, w), {"stride": 2, "padding": 1})]


def primal(x, weight, bias=None, *, stride=1, padding=0):
    return F.conv1d(x, weight, bias, stride=stride, padding=padding)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
