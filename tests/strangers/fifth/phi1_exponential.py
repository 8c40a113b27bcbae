"""phi_1(x) = (exp(x) - 1)/x of exponential integrators, with the limit 1 at zero."""

import torch


class Phi1(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), torch.expm1(x) / x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (torch.exp(x) - torch.expm1(x) / x) / x


def phi1(x):
    return Phi1.apply(x)


def primal(x):
    zero = x == 0
    safe = torch.where(zero, torch.ones_like(x), x)
    return torch.where(zero, 1 + x / 2 + x * x / 6, torch.expm1(safe) / safe)


surrogate = primal
FUNCTION = phi1
WRT = ("x",)


def _x(*v):
    return torch.tensor(v, dtype=torch.float64)


CALLS = [lambda: (_x(0.5, -1.2, 2.0),), lambda: (_x(0.0, 1.0, -0.7, 0.0),), lambda: (_x(-3.0, 0.8).view(2, 1),)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = "backward has no guard at zero: the gradient there is NaN instead of 1/2"
KEYWORDS = ("nan", "zero", "finite", "division", "gradient")
