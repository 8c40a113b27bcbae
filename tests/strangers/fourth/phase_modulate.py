"""Pointwise product of a field with a learned complex phase mask (optics)."""

import torch


class Modulate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field, mask):
        ctx.save_for_backward(field, mask)
        return field * mask

    @staticmethod
    def backward(ctx, grad):
        field, mask = ctx.saved_tensors
        g_field = grad * mask.conj()
        g_mask = (grad * field).sum(0)
        return g_field, g_mask


def modulate(field, mask):
    return Modulate.apply(field, mask)


def primal(field, mask):
    re = field.real * mask.real - field.imag * mask.imag
    im = field.real * mask.imag + field.imag * mask.real
    return torch.complex(re, im)


surrogate = primal
FUNCTION = modulate
WRT = ("field", "mask")


def _args(seed, n, *shape):
    gen = torch.Generator().manual_seed(seed)
    field = torch.randn(n, *shape, generator=gen, dtype=torch.complex128)
    return field, torch.polar(
        torch.ones(*shape, dtype=torch.float64), torch.randn(*shape, generator=gen, dtype=torch.float64)
    )


CALLS = [lambda: _args(0, 3, 2, 2), lambda: _args(1, 1, 4), lambda: _args(2, 2, 1)]
LIMITS = ("vmap", "jvp", "compile", "half")
DEFECT = "the gradient of mask lacks the complex conjugate of field"
KEYWORDS = ("mask", "conj", "complex", "gradient")
