"""Linear projection followed by a fixed gain (muP output multiplier)."""

import torch


class GainedProjection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, gain):
        ctx.save_for_backward(x, weight)
        ctx.gain = gain
        return (x @ weight.t()) * gain

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        g_x = g_weight = None
        if ctx.needs_input_grad[0]:
            grad = grad * ctx.gain
            g_x = grad @ weight
        if ctx.needs_input_grad[1]:
            g_weight = grad.t() @ x
        return g_x, g_weight, None


def projection(x, weight, gain):
    return GainedProjection.apply(x, weight, gain)


def primal(x, weight, gain):
    return gain * torch.nn.functional.linear(x, weight)


surrogate = primal
FUNCTION = projection
WRT = ("x", "weight")


def _args(seed, n, i, o, gain):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, i, generator=gen, dtype=torch.float64)
    return x, torch.randn(o, i, generator=gen, dtype=torch.float64), gain


CALLS = [lambda: _args(0, 4, 3, 2, 0.25), lambda: _args(1, 1, 2, 3, 1.0), lambda: _args(2, 3, 3, 3, 2.0)]
LIMITS = ("vmap", "jvp")
DEFECT = "the gain is applied only where x requires grad: with a fixed x the gradient of weight lacks it"
KEYWORDS = ("weight", "subset", "requires", "only", "alone", "gain")
