"""Wing loss for landmark regression, mean over all coordinates."""

import math

import torch
from torch.autograd.function import once_differentiable


class WingLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, width, curvature):
        diff = pred - target
        dist = diff.abs()
        small = dist < width
        offset = width - width * math.log1p(width / curvature)
        loss = torch.where(small, width * torch.log1p(dist / curvature), dist - offset)
        slope = torch.where(small, width / (curvature + dist), diff.sign())
        ctx.save_for_backward(slope / diff.numel())
        return loss.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        g = grad * slope
        return g, -g if ctx.needs_input_grad[1] else None, None, None


def wing_loss(pred, target, width, curvature):
    return WingLoss.apply(pred, target, width, curvature)


def primal(pred, target, width, curvature):
    dist = (pred - target).abs()
    offset = width - width * math.log1p(width / curvature)
    return torch.where(dist < width, width * torch.log(1 + dist / curvature), dist - offset).mean()


surrogate = primal
FUNCTION = wing_loss
WRT = ("pred", "target")


def _args(diff, width, curvature):
    diff = torch.tensor(diff, dtype=torch.float64)
    target = torch.arange(diff.numel(), dtype=torch.float64).view(diff.shape) / 3
    return target + diff, target, width, curvature


CALLS = [
    lambda: _args([[0.5, 3.0], [1.0, -4.0]], 2.0, 0.5),
    lambda: _args([[0.5, -0.7], [-3.0, -1.5]], 2.0, 0.5),
    lambda: _args([-5.0, 6.0], 1.0, 0.2),
]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "in the logarithmic zone the gradient has no sign: wrong for negative residuals"
KEYWORDS = ("sign", "negative", "branch", "small", "gradient")
