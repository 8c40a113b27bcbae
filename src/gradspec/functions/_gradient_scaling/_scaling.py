r"""The identity whose gradient is scaled, shared by GradFactor and GradMultiply.

.. math::

    y = x, \qquad \bar{x} = f\,\bar{y}, \qquad \dot{y} = f\,\dot{x}

The two published classes differ only in the names of their arguments, so their classes say how torch calls them
and everything that computes is here, once.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._coefficient import Coefficient as Factor
from gradspec.functions._coefficient import checked_coefficient, save_coefficient, saved_coefficient
from gradspec.functions._torch import allow_in_graph, apply_function, apply_in_place_of, has_tangent


class _Required:
    """Stands where an argument is missing, so that the error can say what to write."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final[Any] = _Required()


def apply_scaling(cls: type[Function], x: Tensor, factor: Factor, *, call: str, name: str) -> Tensor:
    """Check a call, and choose the form in which torch keeps the declared gradient.

    Args:
        cls: the published class.
        x: the tensor whose gradient is scaled.
        factor: what the caller gave.
        call: how the call is written, for the messages: "GradFactor.apply".
        name: what the call names the factor, for the messages.
    """
    factor = checked_factor(x, factor, call=call, name=name)
    if not (x.is_floating_point() or x.is_complex()):
        return identity(x)  # no gradient flows to this dtype, so the identity is all there is
    if torch.compiler.is_exporting():
        return stop_gradient_form(x, factor)
    if has_tangent(x):
        return apply_function(ScaledCopy, x, factor)
    scaled: Tensor = apply_in_place_of(cls, x, factor)
    return scaled


def checked_factor(x: Tensor, factor: Factor, *, call: str, name: str) -> Factor:
    """Return the factor as the Function takes it: a float, or a tensor of x's dtype that broadcasts to x's shape.

    Args:
        x, factor, call, name: as `apply_scaling` takes them.

    Raises:
        TypeError: x is not a tensor, or the factor is missing, complex or not a number.
        ValueError: the factor requires grad, carries a tangent, or does not broadcast to x's shape.
    """
    if isinstance(x, tuple | list) and factor is REQUIRED:
        raise TypeError(
            f"{call} takes two arguments, got one {type(x).__name__} of {len(x)}: autograd does not look into a "
            f"{type(x).__name__}, so no gradient would flow. Write {call}(x, {name})"
        )
    if not isinstance(x, Tensor):
        raise TypeError(f"{call}: x is a {type(x).__name__}, expected a tensor. Write {call}(x, {name})")
    if factor is REQUIRED:
        raise TypeError(f"{call} takes two arguments, and {name} is missing. Write {call}(x, {name})")
    return checked_coefficient(x, factor, call=call, name=name)


def identity(x: Tensor) -> Tensor:
    """Return x's value without a copy, as a view that autograd tracks."""
    return x.view_as(x)


def stop_gradient_form(x: Tensor, factor: Factor) -> Tensor:
    """Return the same function without a Function: the form that `torch.export` does not strip of its gradient.

    Not bit-identical at infinities and -0.0, and twice the time, so it is for exporting only.
    """
    return x.detach() + factor * (x - x.detach())


def scaled(ctx: Any, vector: Tensor) -> Tensor:
    """Return `factor * vector`: the backward pass of a cotangent, and forward mode of a tangent."""
    return saved_coefficient(ctx) * vector


@allow_in_graph
class ScaledCopy(Function):
    """The same function where x carries a tangent: the output is a copy.

    Forward mode with dual tensors refuses a Function that returns a view of its input unless its jvp returns a view
    too, and `factor * x_dot` cannot be one.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, factor: Factor) -> Tensor:
        """Return a copy of x."""
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Factor], output: Tensor) -> None:
        """Keep the factor."""
        save_coefficient(ctx, inputs[1])

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor) -> tuple[Tensor, None]:
        """Return the scaled cotangent."""
        return scaled(ctx, y_bar), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        """Return the scaled tangent."""
        return scaled(ctx, tangents[0])
