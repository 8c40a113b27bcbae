"""A function with one wrong factor, and with another mistake in another argument."""

import torch

from gradspec import Case, FunctionSpec


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.sin() * w

    @staticmethod
    def backward(ctx, y_bar):
        x, w = ctx.saved_tensors
        return 2 * y_bar * x.cos() * w, y_bar * x.sin()


class WritesToo(Gate):
    @staticmethod
    def backward(ctx, y_bar):
        found = Gate.backward(ctx, y_bar)
        y_bar.zero_()
        return found


def gate(x, w):
    return x.sin() * w


def cases(make):
    yield Case(name="row", args=(make(3), make(3)))
    yield Case(name="matrix", args=(make(2, 3), make(2, 3)))


SPEC = FunctionSpec(name="gate", function=Gate.apply, primal=gate, surrogate=gate, wrt=("x", "w"), cases=cases)
TWO = SPEC.for_(WritesToo.apply, name="two")
