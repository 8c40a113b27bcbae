"""Operators whose gradient is lost, or wrong, by how it is registered."""

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.spec import Case
from gradspec_lab.specimens.diseased import Disease, Specimens
from gradspec_lab.specimens.operators import _cases, _contiguous
from gradspec_lab.specimens.registrations import keep, made, matrices, registered

DISEASED = Specimens()
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
    vjp=r"gradient of .* is None",
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


class _Straight(Function):
    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


def _sometimes_straight(x, rounded):
    """Call torch's operators: autograd knows these, and not what a Function among them makes of them."""
    return _Straight.apply(x) if rounded else x.clone()


def _maybe_rounded(make):
    yield Case(name="as it is", args=(make(4, 3), False))
    yield Case(name="rounded", args=(make(4, 3), True))


sick(
    registered(
        "gradient_lost_in_an_export",
        "(Tensor x, bool rounded) -> Tensor",
        lambda x, rounded: x.round() if rounded else x,
        _maybe_rounded,
        said={"surrogate": lambda x, rounded: x},
        CompositeImplicitAutograd=_sometimes_straight,
    ),
    exported_operator=r"gradient of `x` in a new process \(case 'rounded', taken apart\) differs",
)
