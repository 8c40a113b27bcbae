"""Sound functions: no law may break on them."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions import GRAD_FACTOR
from gradspec.spec import Case, Formula, FunctionSpec, Make, Misuse, Saved, Supports


class Scale(Function):
    """Copy x, and scale its gradient: the sound twin of most diseased specimens.

    >>> x = torch.ones(2, requires_grad=True)
    >>> Scale.apply(x, 3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x, factor):
        if isinstance(factor, str):
            raise TypeError("factor is text, expected a number")
        if torch.compiler.is_exporting():
            return x.detach() + factor * (x - x.detach())
        return super().apply(x, factor)

    @staticmethod
    def forward(x, factor):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None

    @staticmethod
    def jvp(ctx, x_dot, _):
        return ctx.factor * x_dot


torch.compiler.allow_in_graph(Scale)


class Cube(Function):
    """x to the third, with the gradient that it has."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x):
        return x**3 if torch.compiler.is_exporting() else super().apply(x)

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, y_bar):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar

    @staticmethod
    def jvp(ctx, x_dot):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * x_dot


torch.compiler.allow_in_graph(Cube)


class Product(Function):
    """The product of two tensors, of which the second broadcasts."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, x, weight):
        return x * weight if torch.compiler.is_exporting() else super().apply(x, weight)

    @staticmethod
    def forward(x, weight):
        return x * weight

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, y_bar):
        x, weight = ctx.saved_tensors
        x_bar = (y_bar * weight).sum_to_size(x.shape) if ctx.needs_input_grad[0] else None
        weight_bar = (y_bar * x).sum_to_size(weight.shape) if ctx.needs_input_grad[1] else None
        return x_bar, weight_bar

    @staticmethod
    def jvp(ctx, x_dot, weight_dot):
        x, weight = ctx.saved_tensors
        zero = torch.zeros_like
        return (zero(x) if x_dot is None else x_dot) * weight + x * (zero(weight) if weight_dot is None else weight_dot)


torch.compiler.allow_in_graph(Product)


def _scale_cases(make: Make) -> Iterator[Case]:
    yield Case(name="matrix", args=(make(2, 3), 3.0))
    yield Case(name="empty", args=(make(0, 3), 3.0))
    yield Case(name="scalar", args=(make(), 3.0))


def _scale_misuses(make: Make) -> Iterator[Misuse]:
    yield Misuse(case=Case(name="text", args=(make(2), "3")), error=TypeError, match="factor is text")


def _cube_cases(make: Make) -> Iterator[Case]:
    yield Case(name="vector", args=(make(4),))
    yield Case(name="transposed", args=(make(2, 3).T,))


def _product_cases(make: Make) -> Iterator[Case]:
    yield Case(name="same shape", args=(make(2, 3), make(2, 3)))
    yield Case(name="broadcast", args=(make(2, 3), make(3)))


def _identity(x: Tensor, factor: float) -> Tensor:
    return x


SCALE = FunctionSpec(
    name="scale",
    function=Scale.apply,
    primal=_identity,
    surrogate=lambda x, factor: factor * x,
    wrt=("x",),
    cases=_scale_cases,
    raises=_scale_misuses,
    saved=Saved(text="nothing", bytes=lambda x, factor: 0),
    documented=(Scale,),
    formula=Formula(primal="x", surrogate="factor * x"),
    supports=Supports.all(),
)
CUBE = FunctionSpec(
    name="cube",
    function=Cube.apply,
    primal=lambda x: x**3,
    surrogate=lambda x: x**3,
    wrt=("x",),
    cases=_cube_cases,
    formula=Formula(primal="x**3", surrogate="x**3"),
    supports=Supports.all(),
)
PRODUCT = FunctionSpec(
    name="product",
    function=Product.apply,
    primal=lambda x, weight: x * weight,
    surrogate=lambda x, weight: x * weight,
    wrt=("x", "weight"),
    cases=_product_cases,
    supports=Supports.all(),
)
HONEST = (SCALE, CUBE, PRODUCT, GRAD_FACTOR)
