"""An honest spec and a function that breaks its promise, small enough to read."""

import torch

from gradspec import Case, FunctionSpec, Supports


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None


class IgnoresFactor(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, None


def cases(make):
    yield Case(name="factor 0.1", args=(make(2, 3), 0.1))
    yield Case(name="factor 1", args=(make(2, 3), 1.0))


HONEST = FunctionSpec(
    name="honest",
    function=Scale.apply,
    primal=lambda x, factor: x.clone(),
    surrogate=lambda x, factor: factor * x,
    wrt=("x",),
    cases=cases,
    summary="Scales the gradient.",
    supports=Supports.all(),
)
DISEASED = HONEST.for_(IgnoresFactor.apply, name="ignores_factor")
