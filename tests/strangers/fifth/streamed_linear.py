"""Linear layer that streams its weight gradient over blocks of rows into a preallocated buffer."""

import torch
from torch.autograd.function import once_differentiable


class StreamedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, block):
        ctx.save_for_backward(x, weight)
        ctx.block = block
        ctx.g_weight = torch.zeros_like(weight)
        return torch.cat([rows @ weight.t() for rows in x.split(block)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        g_x = torch.empty_like(x)
        for part, rows, g in zip(g_x.split(ctx.block), x.split(ctx.block), grad.split(ctx.block), strict=True):
            part.copy_(g @ weight)
            ctx.g_weight.addmm_(g.t(), rows)
        return g_x, ctx.g_weight, None


def streamed_linear(x, weight, block):
    return StreamedLinear.apply(x, weight, block)


def primal(x, weight, block):
    return torch.nn.functional.linear(x, weight)


surrogate = primal
FUNCTION = streamed_linear
WRT = ("x", "weight")


def _args(seed, n, i, o, block):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, i, generator=gen, dtype=torch.float64)
    return x, torch.randn(o, i, generator=gen, dtype=torch.float64), block


CALLS = [lambda: _args(0, 5, 3, 2, 2), lambda: _args(1, 4, 2, 3, 4), lambda: _args(2, 3, 1, 1, 1)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "the buffer of the weight gradient is not cleared: a second backward over a kept graph adds to it"
KEYWORDS = ("second", "retain", "twice", "repeat", "accumulat", "backward")
