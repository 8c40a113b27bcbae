"""Heaviside spikes against a learned threshold per neuron, with the fast-sigmoid surrogate gradient."""

import torch


class FastSigmoidSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, membrane, threshold, sharpness):
        ctx.save_for_backward(membrane, threshold)
        ctx.sharpness = sharpness
        return (membrane > threshold).to(membrane.dtype)

    @staticmethod
    def backward(ctx, grad):
        membrane, threshold = ctx.saved_tensors
        slope = (1 + ctx.sharpness * (membrane - threshold).abs()).pow(-2)
        g = grad * slope
        return g, -g.sum_to_size(threshold.shape), None


def spike(membrane, threshold, sharpness):
    return FastSigmoidSpike.apply(membrane, threshold, sharpness)


def primal(membrane, threshold, sharpness):
    return torch.heaviside(membrane - threshold, membrane.new_zeros(()))


def surrogate(membrane, threshold, sharpness):
    over = membrane - threshold
    return over / (1 + sharpness * over.abs())


FUNCTION = spike
WRT = ("membrane", "threshold")


def _args(seed, shape, tshape, sharpness):
    gen = torch.Generator().manual_seed(seed)
    membrane = torch.randn(shape, generator=gen, dtype=torch.float64)
    return membrane, 0.2 + 0.1 * torch.rand(tshape, generator=gen, dtype=torch.float64), sharpness


CALLS = [
    lambda: _args(0, (4, 3), (3,), 10.0),
    lambda: _args(1, (2, 5, 2), (5, 1), 2.0),
    lambda: _args(2, (6,), (6,), 25.0),
]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
