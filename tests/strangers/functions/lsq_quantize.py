import math

import torch
from torch.autograd.function import once_differentiable


class LSQ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step, qn, qp, grad_scale):
        ctx.save_for_backward(x, step)
        ctx.conf = qn, qp, grad_scale
        return torch.clamp(torch.round(x / step), qn, qp) * step

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, step = ctx.saved_tensors
        qn, qp, grad_scale = ctx.conf
        v = x / step
        low, high = v < qn, v > qp
        mid = ~(low | high)
        gx = gy * mid.to(gy.dtype)
        ds = low * qn + high * qp + mid * (v.round() - v)
        gs = (gy * ds).sum().reshape(step.shape) * grad_scale
        return gx, gs, None, None, None


def lsq(x, step, bits=4, signed=True):
    qn, qp = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return LSQ.apply(x, step, qn, qp, 1.0 / math.sqrt(x.numel() * qp))


function = lsq
wrt = ("x", "step")


def calls():
    g = torch.Generator().manual_seed(3)
    x = 4 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    y = 2 * torch.rand(3, 5, generator=g, dtype=torch.float64)
    half = torch.tensor(0.7, dtype=torch.float64)
    one = torch.tensor([0.11], dtype=torch.float64)
    return [((x, half), {}), ((y, one, 3), {"signed": False})]


def primal(x, step, bits=4, signed=True):
    qn, qp = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return torch.clamp(torch.round(x / step), qn, qp) * step


def surrogate(x, step, bits=4, signed=True):
    qn, qp = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    k = 1.0 / math.sqrt(x.numel() * qp)
    s = step * k + (step - step * k).detach()
    v = torch.clamp(x / s, qn, qp)
    return (v + (v.round() - v).detach()) * s


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
