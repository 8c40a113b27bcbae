"""Functions that draw inside, sound ones and broken ones."""

from __future__ import annotations

import random

import numpy
import torch
from torch.autograd import Function


def mask_like(x, p):
    return (torch.rand_like(x) >= p) / (1 - p)


def numpy_mask_like(x, p):
    return torch.from_numpy(numpy.random.rand(*x.shape) >= p) / (1 - p)


def python_mask_like(x, p):
    return x.new_tensor([[random.random() >= p for _ in row] for row in x]) / (1 - p)


def dropout(x, p):
    return x * mask_like(x, p)


def kept(ctx, x, p, mask):
    ctx.save_for_backward(mask)
    ctx.p = p
    return x * mask


class Dropout(Function):
    """Draw a mask in forward, and keep it."""

    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, mask_like(x, p))

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.saved_tensors[0], None


class Unscaled(Dropout):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (ctx.saved_tensors[0] > 0), None


class Anew(Dropout):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * mask_like(y_bar, ctx.p), None


class AnewAside(Dropout):
    """As a checkpoint that does not restore the state of forward: the generator is where it was behind it."""

    @staticmethod
    def backward(ctx, y_bar):
        with torch.random.fork_rng(devices=[]):
            return y_bar * mask_like(y_bar, ctx.p), None


class AnewAndUnscaled(Dropout):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * (mask_like(y_bar, ctx.p) > 0), None


class ByNumpy(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, numpy_mask_like(x, p))


class ByPython(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, python_mask_like(x, p))


OWN_GENERATOR = torch.Generator().manual_seed(0)


class ByItsOwn(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        return kept(ctx, x, p, (torch.rand(x.shape, dtype=x.dtype, generator=OWN_GENERATOR) >= p) / (1 - p))


class Seeds(Dropout):
    @staticmethod
    def forward(ctx, x, p):
        torch.manual_seed(0)
        return Dropout.forward(ctx, x, p)


class Rewound(Dropout):
    """Draw the mask again in backward, from the state in which forward found the generator."""

    @staticmethod
    def forward(ctx, x, p):
        ctx.p, ctx.state = p, torch.get_rng_state()
        ctx.save_for_backward(x)
        return x * mask_like(x, p)

    @staticmethod
    def backward(ctx, y_bar):
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(ctx.state)
            return y_bar * mask_like(*ctx.saved_tensors, ctx.p), None


class Given(Function):
    """Draw from a generator of the caller's."""

    @staticmethod
    def forward(ctx, x, generator):
        mask = torch.rand(x.shape, dtype=x.dtype, generator=generator)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar * ctx.saved_tensors[0], None


class GivenDoubled(Given):
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar * ctx.saved_tensors[0], None


class Gumbel(Function):
    """Choose by a softmax with noise; the gradient is that of the softmax."""

    @staticmethod
    def forward(ctx, logits, tau):
        soft = gumbel_softmax(logits, tau)
        ctx.save_for_backward(soft)
        ctx.tau = tau
        return torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1)

    @staticmethod
    def backward(ctx, y_bar):
        (soft,) = ctx.saved_tensors
        return soft * (y_bar - (y_bar * soft).sum(-1, keepdim=True)) / ctx.tau, None


class GumbelWithoutTau(Gumbel):
    @staticmethod
    def backward(ctx, y_bar):
        return Gumbel.backward(ctx, y_bar)[0] * ctx.tau, None


def gumbel_softmax(logits, tau):
    return torch.softmax((logits - torch.log(-torch.log(torch.rand_like(logits)))) / tau, -1)


def gumbel_choice(logits, tau):
    soft = gumbel_softmax(logits, tau)
    return torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1)


class Shake(Function):
    """Mix by one number in forward and by another one in backward, as published."""

    @staticmethod
    def forward(ctx, a, b):
        return mixed(a, b)

    @staticmethod
    def backward(ctx, y_bar):
        beta = torch.rand(len(y_bar), 1, dtype=y_bar.dtype)
        return tuple(
            part * y_bar if asked else None for part, asked in zip((beta, 1 - beta), ctx.needs_input_grad, strict=True)
        )


class ShakeOfOne(Shake):
    """Gives both the part of the first."""

    @staticmethod
    def backward(ctx, y_bar):
        beta = torch.rand(len(y_bar), 1, dtype=y_bar.dtype)
        return tuple(beta * y_bar if asked else None for asked in ctx.needs_input_grad)


class NoisyGradient(Function):
    """The identity; backward adds noise, in the dtype and the shape of the cotangent."""

    @staticmethod
    def forward(ctx, x, width):
        ctx.width = width
        return x.clone()

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar + ctx.width * torch.randn_like(y_bar), None


class TwiceAsNoisy(NoisyGradient):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar + 2 * ctx.width * torch.randn_like(y_bar), None


def with_noise(inputs, output, cotangent):
    return {"x": cotangent + inputs.width * torch.randn_like(cotangent)}


def shaken(inputs, output, cotangent):
    """The gradient of Shake-Shake, without the numbers that forward draws."""
    beta = torch.rand(len(cotangent), 1, dtype=cotangent.dtype)
    return {"a": beta * cotangent, "b": (1 - beta) * cotangent}


def shaken_behind_forward(inputs, output, cotangent):
    mixed(inputs.a, inputs.b)
    return shaken(inputs, output, cotangent)


def mixed(a, b):
    weight = torch.rand(len(a), 1, dtype=a.dtype)
    return weight * a + (1 - weight) * b


def mixed_again(a, b):
    mixed(a, b)  # backward goes on where forward has ended
    return mixed(a, b)


def gumbel_gradient(inputs, output, cotangent):
    soft = gumbel_softmax(*inputs)
    return {"logits": soft * (cotangent - (cotangent * soft).sum(-1, keepdim=True)) / inputs.tau}


def masked(x, generator):
    return x * torch.rand(x.shape, dtype=x.dtype, generator=generator)
