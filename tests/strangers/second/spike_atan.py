import math

import torch


class ATanSpike(torch.autograd.Function):
    """Fire when the membrane potential reaches the threshold; arctan surrogate (Fang et al. 2021)."""

    @staticmethod
    def forward(ctx, v, v_th, alpha):
        ctx.save_for_backward(v)
        ctx.v_th, ctx.alpha = v_th, alpha
        return (v >= v_th).to(v.dtype)

    @staticmethod
    def backward(ctx, grad_spike):
        (v,) = ctx.saved_tensors
        x = math.pi / 2 * ctx.alpha * (v - ctx.v_th)
        return grad_spike * ctx.alpha / 2 / (1 + x * x), None, None


def spike(v, v_th=1.0, alpha=2.0):
    return ATanSpike.apply(v, v_th, alpha)


function = spike
wrt = ("v",)


def calls():
    g = torch.Generator().manual_seed(101)
    a = 1 + torch.randn(4, 6, generator=g, dtype=torch.float64)
    b = torch.randn(3, 2, 5, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b, 0.5), {"alpha": 4.0})]


def primal(v, v_th=1.0, alpha=2.0):
    return torch.where(v >= v_th, 1.0, 0.0).to(v.dtype)


def surrogate(v, v_th=1.0, alpha=2.0):
    return torch.atan(math.pi / 2 * alpha * (v - v_th)) / math.pi + 0.5


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
