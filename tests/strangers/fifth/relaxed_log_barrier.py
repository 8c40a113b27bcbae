"""Log barrier of MPC, continued by a quadratic below delta."""

import math

import torch


class RelaxedBarrier(torch.autograd.Function):
    @staticmethod
    def forward(ctx, slack, mu, delta):
        ctx.save_for_backward(slack)
        ctx.mu, ctx.delta = mu, delta
        z = (slack - 2 * delta) / delta
        quad = 0.5 * (z * z - 1) - math.log(delta)
        return mu * torch.where(slack > delta, -slack.clamp(min=delta).log(), quad)

    @staticmethod
    def backward(ctx, grad):
        (slack,) = ctx.saved_tensors
        delta = ctx.delta
        steep = -1 / slack.clamp(min=delta)
        flat = (slack - 2 * delta) / delta
        return grad * ctx.mu * torch.where(slack > delta, steep, flat), None, None


def barrier(slack, mu, delta):
    return RelaxedBarrier.apply(slack, mu, delta)


def primal(slack, mu, delta):
    inside = slack > delta
    log = -torch.log(torch.where(inside, slack, torch.ones_like(slack)))
    quad = 0.5 * (((slack - 2 * delta) / delta) ** 2 - 1) - math.log(delta)
    return mu * torch.where(inside, log, quad)


surrogate = primal
FUNCTION = barrier
WRT = ("slack",)


def _x(*v):
    return torch.tensor(v, dtype=torch.float64)


CALLS = [
    lambda: (_x(0.9, 2.0, 1.3), 0.5, 0.1),
    lambda: (_x(-0.4, 0.05, 0.7, -1.0), 0.5, 0.2),
    lambda: (_x(-0.5, 0.3, 2.0), 2.0, 1.0),
]
LIMITS = ("vmap", "jvp")
DEFECT = "the gradient of the quadratic branch lacks a factor 1/delta"
KEYWORDS = ("factor", "quadratic", "branch", "delta", "scale", "gradient")
