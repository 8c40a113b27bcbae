"""Round joint targets to the encoder grid and clip them to the workspace; gradient passes inside."""

import torch
from torch.autograd.function import once_differentiable


class EncoderClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, low, high, tick):
        ctx.save_for_backward((q < low) | (q > high))
        return (torch.round(q / tick) * tick).clamp(low, high)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (outside,) = ctx.saved_tensors
        return grad.masked_fill_(outside, 0.0), None, None, None


def workspace_clip(q, low, high, tick):
    return EncoderClip.apply(q, low, high, tick)


def primal(q, low, high, tick):
    return torch.clamp(torch.round(q / tick) * tick, min=low, max=high)


def surrogate(q, low, high, tick):
    return q.clamp(low, high)


FUNCTION = workspace_clip
WRT = ("q",)


def _x(*v):
    return torch.tensor(v, dtype=torch.float64)


CALLS = [
    lambda: (_x(-2.0, 0.3, 1.7, 0.55), -1.0, 1.0, 0.25),
    lambda: (_x(0.1, 0.2), -1.0, 1.0, 0.5),
    lambda: (_x(3.0, -3.1, 2.1).view(3, 1), -2.0, 2.5, 0.5),
]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "backward zeroes entries of the incoming gradient in place"
KEYWORDS = ("in place", "inplace", "cotangent", "incoming", "modifies", "mutat")
