"""Linear layer followed by an in-place leaky ReLU (saves a mask, not the activation)."""

import torch


class LeakyReLUInplace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, slope):
        pos = h > 0
        h.mul_(torch.where(pos, 1.0, slope).to(h.dtype))
        ctx.mark_dirty(h)
        ctx.save_for_backward(pos)
        ctx.slope = slope
        return h

    @staticmethod
    def backward(ctx, grad):
        (pos,) = ctx.saved_tensors
        return torch.where(pos, grad, grad * ctx.slope), None


def linear_leaky(x, weight, slope):
    h = x @ weight.t()
    return LeakyReLUInplace.apply(h, slope)


def primal(x, weight, slope):
    return torch.nn.functional.leaky_relu(x @ weight.t(), slope)


surrogate = primal
FUNCTION = linear_leaky
WRT = ("x", "weight")


def _args(seed, n, i, o, slope):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, i, generator=gen, dtype=torch.float64)
    return x, torch.randn(o, i, generator=gen, dtype=torch.float64), slope


CALLS = [lambda: _args(0, 4, 3, 5, 0.125), lambda: _args(1, 1, 2, 1, 0.2), lambda: _args(2, 3, 1, 2, 0.5)]
LIMITS = ("vmap", "jvp")
DEFECT = ""
KEYWORDS = ()
