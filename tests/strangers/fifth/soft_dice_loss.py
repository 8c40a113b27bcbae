"""Soft Dice loss for segmentation; the gradient is worked out with the value."""

import torch
from torch.autograd.function import once_differentiable


class SoftDice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prob, target, smooth):
        dims = tuple(range(1, prob.dim()))
        inter = (prob * target).sum(dims, keepdim=True)
        total = (prob + target).sum(dims, keepdim=True)
        dice = (2 * inter + smooth) / (total + smooth)
        ctx.save_for_backward((dice - 2 * target) / (total + smooth) / prob.shape[0])
        return 1 - dice.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (g_prob,) = ctx.saved_tensors
        return g_prob, None, None


def soft_dice(prob, target, smooth):
    return SoftDice.apply(prob, target, smooth)


def primal(prob, target, smooth):
    p, t = prob.flatten(1), target.flatten(1)
    dice = (2 * (p * t).sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)
    return (1 - dice).mean()


surrogate = primal
FUNCTION = soft_dice
WRT = ("prob",)


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    prob = torch.rand(shape, generator=gen, dtype=torch.float64)
    return prob, (torch.rand(shape, generator=gen) < 0.4).double(), 1.0


CALLS = [lambda: _args(0, 2, 3, 4), lambda: _args(1, 1, 6), lambda: _args(2, 3, 2, 2)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "backward returns the stored gradient without the incoming one"
KEYWORDS = ("incoming", "cotangent", "ignores", "output", "scale", "gradient")
