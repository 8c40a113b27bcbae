"""Scaled unit rows for a cosine classifier head; reduces in float32 when the input is half."""

import torch


class ScaledUnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        acc = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        return (scale * acc / acc.norm(dim=-1, keepdim=True)).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = x.norm(dim=-1, keepdim=True)
        inner = (grad * x).sum(-1, keepdim=True)
        return ctx.scale * (grad / n - x * inner / n**3), None


def unit_rows(x, scale):
    return ScaledUnitRows.apply(x, scale)


def primal(x, scale):
    acc = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (acc / acc.square().sum(-1, keepdim=True).sqrt() * scale).to(x.dtype)


surrogate = primal
FUNCTION = unit_rows
WRT = ("x",)


def _x(seed, *shape, size=1.0):
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_x(0, 3, 4), 1.0),
    lambda: (_x(1, 2, 6, size=40.0), 16.0),
    lambda: (_x(2, 3, 8, size=30.0).half(), 30.0),
]
LIMITS = ("vmap", "jvp")
DEFECT = "in half precision the cube of the norm overflows in backward and the radial part of the gradient is lost"
KEYWORDS = ("half", "float16", "overflow", "precision")
