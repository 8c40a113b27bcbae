"""modReLU of Arjovsky et al. (unitary RNNs): shrinks the modulus, keeps the phase."""

import torch


class ModReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, bias):
        ctx.save_for_backward(z, bias)
        r = z.abs()
        return z * ((r + bias).clamp(min=0) / r)

    @staticmethod
    def backward(ctx, grad):
        z, bias = ctx.saved_tensors
        r = z.abs()
        on = (r + bias > 0).to(r.dtype)
        along = (grad * z.conj()).real / r
        grad_z = grad * (on * (1 + bias / r)) - z * (on * along * bias / r**2)
        grad_bias = (on * along).sum(dim=tuple(range(z.dim() - 1)))
        return grad_z, grad_bias


def modrelu(z, bias):
    return ModReLU.apply(z, bias)


def primal(z, bias):
    r = z.abs()
    return torch.relu(r + bias) * z / r


surrogate = primal
FUNCTION = modrelu
WRT = ("z", "bias")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    z = torch.randn(*shape, generator=gen, dtype=torch.complex128)
    return z, 0.6 * torch.randn(shape[-1], generator=gen, dtype=torch.float64)


CALLS = [lambda: _args(0, 5, 3), lambda: _args(1, 2, 3, 4), lambda: _args(2, 1, 1)]
LIMITS = ("vmap", "jvp", "compile", "half")
DEFECT = ""
KEYWORDS = ()
