"""Sound operators that register what few do: several outputs, a list, a rule for autocast, one device, a view."""

import torch
from torch import Tensor

from gradspec.spec import Case, Effects, OperatorSpec
from gradspec_lab.specimens.operators import SPACE, TWICE, _contiguous, scaled

_LIBRARY = torch.library.Library(SPACE, "FRAGMENT")


def registered(name, schema, primal, cases, *, wrt=("x",), said=None, **kernels):
    """Register kernels by their dispatch keys, as C++ does, and return the spec of the operator."""
    _LIBRARY.define(name + schema)
    for key, kernel in kernels.items():
        _LIBRARY.impl(name, kernel, key)
    said = {"supports": TWICE, **(said or {})}
    return OperatorSpec(name=name, operator=f"{SPACE}::{name}", primal=primal, wrt=wrt, cases=cases, **said)


def made(name, kernel, primal, cases, *, fake, backward, setup, wrt=("x",)):
    """Register a kernel with `custom_op`, a fake one and a gradient, and return the spec of the operator."""
    operator = torch.library.custom_op(f"{SPACE}::{name}", kernel, mutates_args=())
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=setup)
    return OperatorSpec(name=name, operator=operator, primal=primal, wrt=wrt, cases=cases, supports=TWICE)


def matrices(make):
    yield Case(name="matrix", args=(make(4, 3),))


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _polar(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cos().contiguous(), x.sin().contiguous()


def _polar_backward(ctx, cos_bar, sin_bar):
    (x,) = ctx.saved_tensors
    return sin_bar * x.cos() - cos_bar * x.sin()


POLAR = made(
    "polar",
    _polar,
    lambda x: (x.cos(), x.sin()),
    matrices,
    fake=lambda x: (x.new_empty(x.shape), x.new_empty(x.shape)),
    backward=_polar_backward,
    setup=keep,
)


def _mirrored(x: Tensor) -> list[Tensor]:
    return [x.clone(memory_format=torch.contiguous_format), (-x).contiguous()]


MIRRORED = made(
    "mirrored",
    _mirrored,
    lambda x: (x, -x),
    matrices,
    fake=lambda x: [x.new_empty(x.shape), x.new_empty(x.shape)],
    backward=lambda ctx, y_bar: y_bar[0] - y_bar[1],
    setup=lambda ctx, inputs, output: None,
)


def phase(name, dtype):
    """Register a fast cosine, which autocast computes in a given dtype."""

    def kernel(x: Tensor) -> Tensor:
        return (100 * x).cos().contiguous()

    spec = made(
        name,
        kernel,
        lambda x: (100 * x).cos(),
        matrices,
        fake=lambda x: x.new_empty(x.shape),
        backward=lambda ctx, y_bar: -100 * (100 * ctx.saved_tensors[0]).sin() * y_bar,
        setup=keep,
    )
    spec.operator.register_autocast("cpu", dtype)
    return spec


PHASE = phase("phase_in_single_precision", torch.float32)
SCALED_ON_CPU = scaled("scaled_on_cpu", lambda x, factor: _contiguous(x, factor), devices="cpu")
VIEW = {"effects": Effects(view_of="x")}
FIRST_COLUMN = registered(
    "first_column",
    "(Tensor(a) x) -> Tensor(a)",
    lambda x: x[:, 0],
    matrices,
    said=VIEW,
    CompositeImplicitAutograd=lambda x: x.select(1, 0),
)

HONEST = (POLAR, MIRRORED, PHASE, SCALED_ON_CPU, FIRST_COLUMN)
