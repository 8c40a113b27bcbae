"""Multiplicative lognormal noise from a private generator, redrawn in backward rather than stored."""

import torch


def _noise(seed, like):
    gen = torch.Generator(device=like.device).manual_seed(seed)
    return torch.randn(like.shape, generator=gen, dtype=torch.float64, device=like.device).to(like.dtype)


class LognormalGain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sigma, seed):
        ctx.save_for_backward(x, sigma)
        ctx.seed = seed
        return x * torch.exp(sigma * _noise(seed, x))

    @staticmethod
    def backward(ctx, grad):
        x, sigma = ctx.saved_tensors
        noise = _noise(ctx.seed, x)
        gain = torch.exp(sigma * noise)
        return grad * gain, (grad * x * gain * noise).sum(), None


def lognormal_gain(x, sigma, seed):
    return LognormalGain.apply(x, sigma, seed)


def primal(x, sigma, seed):
    gen = torch.Generator().manual_seed(seed)
    noise = torch.randn(x.shape, generator=gen, dtype=torch.float64).to(x.dtype)
    return (noise * sigma).exp() * x


surrogate = primal
FUNCTION = lognormal_gain
WRT = ("x", "sigma")


def _args(seed, shape, sigma, noise_seed):
    gen = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=gen, dtype=torch.float64), torch.tensor(sigma, dtype=torch.float64), noise_seed


CALLS = [lambda: _args(0, (3, 4), 0.3, 7), lambda: _args(1, (5,), 0.1, 7), lambda: _args(2, (2, 2, 2), 0.8, 11)]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
