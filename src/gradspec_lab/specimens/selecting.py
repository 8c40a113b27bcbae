"""Sound functions whose output is of another kind than their input: an index beside a value, a real of a complex."""

from collections.abc import Iterator

import torch
from torch.autograd import Function

from gradspec.spec import Case, FunctionSpec, Make, Supports


@torch.compiler.allow_in_graph
class MaxWithIndex(Function):
    """The largest number of each row, and where it stands; the index has no gradient."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x):
        return _largest(x) if torch.compiler.is_exporting() else super().apply(x)

    @staticmethod
    def forward(x):
        return _largest(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx, y_bar, _):
        x, index = ctx.saved_tensors
        return torch.zeros_like(x).scatter(-1, index[..., None], y_bar[..., None])

    @staticmethod
    def jvp(ctx, x_dot):
        (index,) = ctx.saved_tensors
        return x_dot.gather(-1, index[..., None])[..., 0], None


@torch.compiler.allow_in_graph
class Power(Function):
    """The squared modulus of complex numbers, which is real."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x):
        return _power(x) if torch.compiler.is_exporting() else super().apply(x)

    @staticmethod
    def forward(x):
        return _power(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 2 * x * y_bar

    @staticmethod
    def jvp(ctx, x_dot):
        (x,) = ctx.saved_tensors
        return 2 * (x.real * x_dot.real + x.imag * x_dot.imag)


def _largest(x):
    return tuple(x.max(-1))


def _power(x):
    return x.real**2 + x.imag**2


def _rows(make: Make) -> Iterator[Case]:
    # The numbers of a row lie apart, and the largest stands elsewhere in each: no step of a difference crosses a kink.
    order = torch.tensor([[0.0, 20.0, 10.0, 30.0], [30.0, 0.0, 20.0, 10.0], [10.0, 30.0, 0.0, 20.0]])
    x = make(3, 4)
    yield Case(name="matrix", args=(x + order.to(x),))


def _complex(make: Make) -> Iterator[Case]:
    yield Case(name="complex", args=(torch.complex(make(2, 3), make(2, 3)),))


MAX_WITH_INDEX = FunctionSpec(
    name="max_with_index",
    function=MaxWithIndex.apply,
    primal=_largest,
    surrogate=_largest,
    wrt=("x",),
    cases=_rows,
    supports=Supports.all(),
)
POWER = FunctionSpec(
    name="power",
    function=Power.apply,
    primal=_power,
    surrogate=_power,
    wrt=("x",),
    cases=_complex,
    supports=Supports.all(),
)
SELECTING = (MAX_WITH_INDEX, POWER)
