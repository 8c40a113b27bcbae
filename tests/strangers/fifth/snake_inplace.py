"""Snake activation x + sin^2(a x)/a written into the buffer of the layer before it."""

import torch


class SnakeInplace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, alpha):
        before = h.clone()
        ctx.save_for_backward(before, alpha)
        ctx.mark_dirty(h)
        return h.add_(torch.sin(alpha * before).square() / alpha)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        double = torch.sin(2 * alpha * x)
        g_alpha = None
        if ctx.needs_input_grad[1]:
            per = x * double / alpha - torch.sin(alpha * x).square() / alpha.square()
            g_alpha = (grad * per).sum(0)
        return grad * (1 + double), g_alpha


def snake(x, gain, alpha):
    return SnakeInplace.apply(x * gain, alpha)


def primal(x, gain, alpha):
    h = x * gain
    return h + (1 - torch.cos(2 * alpha * h)) / (2 * alpha)


surrogate = primal
FUNCTION = snake
WRT = ("x", "gain", "alpha")


def _args(seed, n, c):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, c, generator=gen, dtype=torch.float64)
    return (
        x,
        torch.randn(c, generator=gen, dtype=torch.float64),
        0.5 + torch.rand(c, generator=gen, dtype=torch.float64),
    )


CALLS = [lambda: _args(0, 4, 3), lambda: _args(1, 1, 2), lambda: _args(2, 6, 1)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = None
KEYWORDS = ()
