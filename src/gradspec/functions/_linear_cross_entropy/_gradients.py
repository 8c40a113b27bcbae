r"""The gradients of the loss as a function of their own, with the derivatives that they have.

.. math::

    \bar{x}_i = \bar{L}_i \frac{\partial L_i}{\partial x_i}, \qquad
    \bar{w}_j = \frac{1}{T} \sum_i \bar{L}_i (p_{ij} - q_{ij})\, x_i, \qquad
    \bar{b}_j = \frac{1}{T} \sum_i \bar{L}_i (p_{ij} - q_{ij}), \qquad
    \bar{m}_i = -\frac{\bar{L}_i}{T} (p_{iy_i} - q_{iy_i})

The first and the last were kept by the forward pass, and so was :math:`p - q` where it is no more than a few million
numbers: the gradient by the weight is one matrix product. Where there are more, the logits are computed again from
the log-sum-exp, a chunk at a time: two products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._linear_cross_entropy._by_class import by_class, by_class_of
from gradspec.functions._linear_cross_entropy._logits import Point, Tangent, working
from gradspec.functions._linear_cross_entropy._second_order import SecondOrder, second_order
from gradspec.functions._linear_cross_entropy._turns import in_turn
from gradspec.functions._torch import allow_in_graph, without_autocast

#: The arguments to which a gradient flows, in the order of `Tangent`.
DIFFERENTIATED = Tangent._fields
#: Where they are in a `Point`.
PLACES = tuple(Point._fields.index(name) for name in DIFFERENTIATED)


class Kept(NamedTuple):
    """The values that the gradients need beside the arguments of the call."""

    #: The cotangent of the loss: shape (B,).
    cotangent: Tensor
    #: As in `Numbers`.
    gradient: Tensor
    log_sum_exp: Tensor
    own_slope: Tensor
    by_logit: Tensor


#: Which gradients are asked for, in the order of `Tangent`.
Needed = tuple[bool, bool, bool, bool]


@allow_in_graph
class Gradients(Function):
    """The gradients of a sum of losses by the arguments that need one; its derivative is the second of the loss."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        """Return the gradients that are asked for; the arguments are those of a `Point`, of `Kept`, and four flags."""
        point, kept, needed = _apart(arguments)
        # The mean over no row has a cotangent of inf, and a row that does not count gets zeros all the same.
        kept = kept._replace(cotangent=torch.where(point.counted, kept.cotangent, 0))
        found: dict[str, Tensor | None] = dict.fromkeys(DIFFERENTIATED)
        if needed[0]:
            found["x"] = kept.cotangent.unsqueeze(1) * kept.gradient
        if needed[1] or needed[2]:
            with without_autocast(point.x):
                by_row = working(kept.cotangent) / point.temperature
                if kept.by_logit.shape[1] == point.weight.shape[0]:
                    of_class = by_class_of(kept.by_logit, point.x, by_row, *needed[1:3])
                else:
                    of_class = by_class(point, by_row, kept.log_sum_exp, *needed[1:3])
                found["weight"], found["bias"] = of_class
        if needed[3]:
            assert point.margin is not None
            slope = -working(kept.cotangent) * kept.own_slope / point.temperature
            found["margin"] = slope.to(point.margin.dtype)
        return tuple(value for value in found.values() if value is not None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep the arguments."""
        # In the first backward pass nothing flows here, and a product of zeros with the Hessian would be slow.
        ctx.set_materialize_grads(False)
        ctx.plain = [None if isinstance(value, Tensor) else value for value in inputs]
        tensors = [value if isinstance(value, Tensor) else None for value in inputs]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the product of the Hessian with the cotangents, and for the cotangent of the loss its slope."""
        point, kept, needed = _apart(_inputs(ctx))
        given = iter(cotangents)
        along = Tangent(*(next(given) if asked else None for asked in needed))
        if all(value is None for value in along):
            return (None,) * len(ctx.plain)
        found = second_order(point, kept.cotangent, along)
        gradients: list[Tensor | None] = [None] * len(ctx.plain)
        for name, place in zip(DIFFERENTIATED, PLACES, strict=True):
            if ctx.needs_input_grad[place]:
                gradients[place] = _like(found, name, point)
        if ctx.needs_input_grad[len(point)]:
            gradients[len(point)] = found.cotangent.to(kept.cotangent.dtype)
        return tuple(gradients)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, ...]:
        """Return the product of the Hessian with the tangents, and the gradients with that of the cotangent."""
        point, kept, needed = _apart(_inputs(ctx))
        along = Tangent(*(tangents[place] for place in PLACES))
        found = second_order(point, kept.cotangent, along)
        moved = [_like(found, name, point) for name, asked in zip(DIFFERENTIATED, needed, strict=True) if asked]
        if (of_cotangent := tangents[len(point)]) is not None:
            linear = gradients(point, kept._replace(cotangent=of_cotangent), needed)
            moved = [a + b for a, b in zip(moved, linear, strict=True)]
        return tuple(moved)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Take turns."""
        return in_turn(Gradients, info, in_dims, arguments)


def gradients(point: Point, kept: Kept, needed: Needed) -> tuple[Tensor, ...]:
    """Return the gradients that are asked for, whatever transforms are at work."""
    found: tuple[Tensor, ...] = Gradients.apply(*point, *kept, *needed)  # type: ignore[no-untyped-call]
    return found


def _apart(arguments: Any) -> tuple[Point, Kept, Needed]:
    arguments = list(arguments)
    first, second = len(Point._fields), len(Point._fields) + len(Kept._fields)
    return Point(*arguments[:first]), Kept(*arguments[first:second]), tuple(arguments[second:])


def _inputs(ctx: Any) -> list[Any]:
    pairs = zip(ctx.saved_tensors, ctx.plain, strict=True)
    return [plain if tensor is None else tensor for tensor, plain in pairs]


def _like(found: SecondOrder, name: str, point: Point) -> Tensor:
    """Return a gradient in the dtype of its argument."""
    value: Tensor = getattr(found, name)
    return value.to(getattr(point, name).dtype)
