"""Alpha compositing along rays: colour and expected depth from densities, colours and steps."""

import torch
from torch.autograd.function import once_differentiable


class Composite(torch.autograd.Function):
    @staticmethod
    def forward(ctx, sigma, color, step, depth):
        if sigma.dtype != torch.float32:
            raise TypeError("composite: float32 only")
        tau = sigma * step
        through = torch.exp(-(tau.cumsum(-1) - tau))
        weight = through * -torch.expm1(-tau)
        ctx.save_for_backward(tau, color, step, depth, weight)
        return (weight.unsqueeze(-1) * color).sum(-2), (weight * depth).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g_rgb, g_depth):
        tau, color, step, depth, weight = ctx.saved_tensors
        g_weight = (g_rgb.unsqueeze(-2) * color).sum(-1) + g_depth.unsqueeze(-1) * depth
        product = weight * g_weight
        after = product.flip(-1).cumsum(-1).flip(-1) - product
        left = torch.exp(-tau.cumsum(-1))
        g_tau = left * g_weight - after
        return g_tau * step, weight.unsqueeze(-1) * g_rgb.unsqueeze(-2), None, None


def composite(sigma, color, step, depth):
    return Composite.apply(sigma, color, step, depth)


def primal(sigma, color, step, depth):
    alpha = 1 - torch.exp(-sigma * step)
    ones = torch.ones_like(alpha[..., :1])
    weight = alpha * torch.cat([ones, 1 - alpha], -1).cumprod(-1)[..., :-1]
    return torch.einsum("...n,...nc->...c", weight, color), (weight * depth).sum(-1)


surrogate = primal
FUNCTION = composite
WRT = ("sigma", "color")


def _args(seed, rays, n):
    gen = torch.Generator().manual_seed(seed)
    sigma = torch.rand(rays, n, generator=gen, dtype=torch.float32) * 2
    color = torch.rand(rays, n, 3, generator=gen, dtype=torch.float32)
    step = 0.1 + torch.rand(rays, n, generator=gen, dtype=torch.float32)
    return sigma, color, step, step.cumsum(-1)


CALLS = [lambda: _args(0, 2, 5), lambda: _args(1, 1, 1), lambda: _args(2, 3, 4)]
LIMITS = ("double_backward", "vmap", "jvp", "float64", "half")
DEFECT = None
KEYWORDS = ()
