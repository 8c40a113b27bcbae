"""Hill equation of a dose-response curve with per-sample half-maximal dose and exponent."""

import torch


class Hill(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dose, ec50, slope):
        y = torch.sigmoid(slope * (dose.log() - ec50.log()))
        ctx.save_for_backward(dose, ec50, slope)
        return y

    @staticmethod
    def backward(ctx, grad):
        dose, ec50, slope = ctx.saved_tensors
        lag = dose.log() - ec50.log()
        y = torch.sigmoid(slope * lag)
        g = grad * y * (1 - y)
        g_dose = g * slope / dose
        g_slope = g * lag
        g_ec50 = -g * slope / ec50
        return g_dose, g_slope, g_ec50


def hill(dose, ec50, slope):
    return Hill.apply(dose, ec50, slope)


def primal(dose, ec50, slope):
    return dose**slope / (ec50**slope + dose**slope)


surrogate = primal
FUNCTION = hill
WRT = ("dose", "ec50", "slope")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return tuple(0.5 + torch.rand(shape, generator=gen, dtype=torch.float64) for _ in range(3))


CALLS = [lambda: _args(0, 5), lambda: _args(1, 2, 3), lambda: _args(2, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward returns the gradients of ec50 and slope in the wrong order"
KEYWORDS = ("order", "swapped", "ec50", "slope", "gradient")
