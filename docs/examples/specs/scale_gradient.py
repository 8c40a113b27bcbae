"""A Function that scales a gradient and has a mistake in it, its spec, and the one line that mends it."""

import torch

from gradspec import Case, FunctionSpec


class ScaleGradient(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y / ctx.factor, None


def cases(make):
    yield Case(name="half", args=(make(3), 0.5))


SCALE = FunctionSpec(
    name="scale_gradient",
    function=ScaleGradient.apply,
    primal=lambda x, factor: x,  # what forward computes
    surrogate=lambda x, factor: factor * x,  # the map whose derivative backward applies
    wrt=("x",),
    cases=cases,
)


class Mended(ScaleGradient):
    @staticmethod
    def backward(ctx, grad_y):
        return grad_y * ctx.factor, None


MENDED = SCALE.for_(Mended.apply, name="scale_gradient, mended")
