"""Two straight-through estimators; the second forgets where it has clipped."""

import torch


class RoundSTE(torch.autograd.Function):
    """Rounds; the gradient passes through."""

    @staticmethod
    def forward(x):
        return torch.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y


class ClipSTE(torch.autograd.Function):
    """Clips to [-1, 1]; the gradient passes where nothing is clipped."""

    @staticmethod
    def forward(x):
        return x.clamp(-1, 1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_y):
        (_x,) = ctx.saved_tensors
        return grad_y
