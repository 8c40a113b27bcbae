"""Preference loss of DPO with a margin, per pair, with forward mode and a generated vmap rule."""

import torch
from torch.nn import functional


class PreferenceLoss(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(chosen, rejected, beta, margin):
        return functional.softplus(margin - beta * (chosen - rejected))

    @staticmethod
    def setup_context(ctx, inputs, output):
        chosen, rejected, beta, margin = inputs
        ctx.save_for_backward(chosen, rejected)
        ctx.save_for_forward(chosen, rejected)
        ctx.beta, ctx.margin = beta, margin

    @staticmethod
    def backward(ctx, grad):
        chosen, rejected = ctx.saved_tensors
        slope = ctx.beta * torch.sigmoid(ctx.margin - ctx.beta * (chosen - rejected))
        return -grad * slope, grad * slope, None, None

    @staticmethod
    def jvp(ctx, t_chosen, t_rejected, _beta, _margin):
        chosen, rejected = ctx.saved_tensors
        slope = ctx.beta * torch.sigmoid(ctx.margin - ctx.beta * (chosen - rejected))
        out = torch.zeros_like(slope)
        if t_chosen is not None:
            out = out - slope * t_chosen
        if t_rejected is not None:
            out = out + slope * t_rejected
        return out


def preference_loss(chosen, rejected, beta=0.1, margin=0.0):
    return PreferenceLoss.apply(chosen, rejected, beta, margin)


def primal(chosen, rejected, beta, margin):
    return -functional.logsigmoid(beta * (chosen - rejected) - margin)


surrogate = primal
FUNCTION = preference_loss
WRT = ("chosen", "rejected")


def _args(seed, shape, beta, margin):
    gen = torch.Generator().manual_seed(seed)
    chosen, rejected = (torch.randn(shape, generator=gen, dtype=torch.float64) * 3 for _ in range(2))
    return chosen, rejected, beta, margin


CALLS = [lambda: _args(0, (5,), 0.1, 0.0), lambda: _args(1, (2, 3), 0.5, 0.2), lambda: _args(2, (1,), 1.0, 1.0)]
LIMITS = ()
DEFECT = None
KEYWORDS = ()
