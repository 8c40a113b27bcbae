"""Softplus with a learned sharpness, used as the last layer of a density head."""

import torch


class SoftplusBeta(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, beta):
        z = beta * x
        return (z.clamp(min=0) + torch.log1p(torch.exp(-z.abs()))) / beta

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, beta = inputs
        ctx.save_for_backward(x, beta)

    @staticmethod
    def backward(ctx, grad):
        x, beta = ctx.saved_tensors
        z = beta * x
        slope = torch.sigmoid(z)
        grad_x = grad * slope
        sp = torch.logaddexp(z, torch.zeros_like(z))
        grad_beta = (grad * (x * slope / beta - sp / beta**2)).sum()
        return grad_x, grad_beta


def softplus_beta(x, beta):
    return SoftplusBeta.apply(x, beta)


def primal(x, beta):
    return torch.logaddexp(beta * x, torch.zeros_like(x)) / beta


surrogate = primal
FUNCTION = softplus_beta
WRT = ("x", "beta")


def _draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_draw(0, 4, 3), torch.tensor(1.7, dtype=torch.float64)),
    lambda: (torch.tensor([-90.0, -3.0, 0.25, 40.0, 700.0], dtype=torch.float64), torch.tensor(2.0).double()),
    lambda: (_draw(1, 2, 1, 5), torch.tensor(0.3, dtype=torch.float64)),
]
LIMITS = ("jvp", "half")
DEFECT = ""
KEYWORDS = ()
