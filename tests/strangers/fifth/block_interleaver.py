"""Row-column interleaver of a code block: write by rows, read by columns, over the whole tensor."""

import torch
from torch.autograd.function import once_differentiable


class Interleave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, symbols, rows):
        n = symbols.numel()
        order = torch.arange(n, device=symbols.device).view(rows, -1).t().reshape(-1)
        ctx.save_for_backward(order)
        return symbols.reshape(-1)[order].view(symbols.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (order,) = ctx.saved_tensors
        out = torch.zeros_like(grad)
        out.reshape(-1).index_copy_(0, order, grad.reshape(-1))
        return out, None


def interleave(symbols, rows):
    return Interleave.apply(symbols, rows)


def primal(symbols, rows):
    return symbols.reshape(rows, -1).mT.reshape(symbols.shape)


surrogate = primal
FUNCTION = interleave
WRT = ("symbols",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 4), 2), lambda: (_x(1, 2, 6), 3), lambda: (_x(2, 4, 2), 4)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = "for a transposed incoming gradient the result is written into a copy and lost"
KEYWORDS = ("contiguous", "stride", "layout", "cotangent", "transposed", "gradient")
