"""Operators whose gradient is lost, or wrong, by how it is registered."""

import torch
from torch import Tensor

from gradspec.selftest.specimens.diseased import Disease
from gradspec.selftest.specimens.operators import _cases, _contiguous
from gradspec.selftest.specimens.registrations import keep, made, matrices, registered
from gradspec.spec import Case

DISEASED = {}
SCALE = "(Tensor x, float factor) -> Tensor"


def sick(spec, **caught_by):
    DISEASED[spec.name] = Disease(spec=spec, caught_by=caught_by)


def _opaque(x, factor):
    """Scale as a kernel in C++ does, of which autograd sees no operation."""
    return _contiguous(x.detach(), factor)


sick(
    registered(
        "no_gradient_registered",
        SCALE,
        lambda x, factor: factor * x,
        _cases,
        CompositeExplicitAutograd=_opaque,
    ),
    kernels=r"no gradient is registered on cpu",
)
sick(
    registered(
        "gradient_falls_through",
        SCALE,
        lambda x, factor: factor * x,
        _cases,
        CompositeExplicitAutograd=_opaque,
        Autograd=torch.library.fallthrough_kernel,
    ),
    vjp=r"no gradient flows at all",
)


def _square(x: Tensor) -> Tensor:
    return (x * x).contiguous()


def _keep_on_ctx(ctx, inputs, output):
    (ctx.x,) = inputs


sick(
    made(
        "keeps_what_may_be_written_later",
        _square,
        lambda x: x * x,
        matrices,
        fake=lambda x: x.new_empty(x.shape),
        backward=lambda ctx, y_bar: 2 * ctx.x * y_bar,
        setup=_keep_on_ctx,
    ),
    ctx_clean=r"a tensor sits on ctx.x",
)


def _product(x: Tensor, weight: Tensor) -> Tensor:
    return (x * weight).contiguous()


def _forgets_a_frozen_weight(ctx, y_bar):
    x, weight = ctx.saved_tensors
    return (y_bar * weight, y_bar * x) if ctx.needs_input_grad[1] else (y_bar, None)


def _pairs(make):
    yield Case(name="matrices", args=(make(4, 3), make(4, 3)))


sick(
    made(
        "forgets_a_frozen_weight",
        _product,
        lambda x, weight: x * weight,
        _pairs,
        fake=lambda x, weight: x.new_empty(x.shape),
        backward=_forgets_a_frozen_weight,
        setup=keep,
        wrt=("x", "weight"),
    ),
    needs_input_grad=r"gradient of `x` \(the only one required\) differs",
)
