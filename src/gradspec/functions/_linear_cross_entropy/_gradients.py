r"""The gradients of the loss as a function of their own, with the derivatives that they have.

.. math::

    \bar{x}_i = \bar{L}_i \frac{\partial L_i}{\partial x_i}, \qquad
    \bar{w}_j = \frac{1}{T} \sum_i \bar{L}_i (p_{ij} - q_{ij})\, x_i, \qquad
    \bar{b}_j = \frac{1}{T} \sum_i \bar{L}_i (p_{ij} - q_{ij}), \qquad
    \bar{m}_i = -\frac{\bar{L}_i}{T} (p_{iy_i} - q_{iy_i})

The first and the last were kept by the forward pass. For the weight, whose gradient needs the log-sum-exp of all rows
and the cotangent of each, the logits are computed again, a chunk at a time: two matrix products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._linear_cross_entropy._logits import (
    Point,
    Tangent,
    at_own_,
    spans,
    working,
)
from gradspec.functions._linear_cross_entropy._second_order import SecondOrder, second_order
from gradspec.functions._linear_cross_entropy._turns import in_turn
from gradspec.functions._torch import without_autocast

#: How many logits a chunk of the weight's gradient holds: 4 MB in float32. Smaller ones stay nearer to a processor, but
#: threads wait for one another after each chunk, and on a busy machine that takes longer.
CACHED_NUMBERS = 2**20
#: The arguments to which a gradient flows, in the order of `Tangent`.
DIFFERENTIATED = Tangent._fields
#: Where they are in a `Point`.
PLACES = tuple(Point._fields.index(name) for name in DIFFERENTIATED)


class Kept(NamedTuple):
    """What the gradients are made of beside the arguments of the call."""

    #: The cotangent of the loss: shape (B,).
    cotangent: Tensor
    #: As in `Numbers`.
    gradient: Tensor
    log_sum_exp: Tensor
    own_slope: Tensor


#: Which gradients are asked for, in the order of `Tangent`.
Needed = tuple[bool, bool, bool, bool]


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
                found["weight"], found["bias"] = _by_class(point, kept, *needed[1:3])
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


def _by_class(point: Point, kept: Kept, of_weight: bool, of_bias: bool) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients by the weight and by the bias, a chunk of their rows at a time, each written once."""
    given, smoothing = point.widened(), point.label_smoothing
    # The cotangent goes to x, which is small, rather than to the chunk: sum_i g_i r_ij x_i = sum_i r_ij (g_i x_i).
    by_row = working(kept.cotangent) / point.temperature
    rows = by_row.unsqueeze(1) * given.x
    parts = list(spans(given.x, point.weight, CACHED_NUMBERS))
    queries, alone = given.x / point.temperature, len(parts) == 1
    # Of large logits, z - l has lost the digits of log p: a chunk that is all there is finds its own sum.
    shift = torch.zeros_like(kept.log_sum_exp) if alone else -kept.log_sum_exp
    # Made from what the cotangent is in, so that a batched cotangent gets a batch of gradients.
    weight = rows.new_empty(point.weight.shape, dtype=point.weight.dtype) if of_weight else None
    bias = by_row.new_empty(point.weight.shape[:1], dtype=point.weight.dtype) if of_bias else None
    for span in parts:
        # Transposed, a class a row: r = exp(z - l) - q is written over the logits.
        r = torch.addmm(shift, point.weight[span].to(queries.dtype), queries.mT)
        if given.bias is not None:
            r += (given.bias[span] / point.temperature).unsqueeze(1)
        if given.margin is not None:
            at_own_(r.mT, span, point.own, -given.margin / point.temperature)
        r = r.softmax(0) if alone else r.exp_()
        if smoothing:
            r -= smoothing / point.weight.shape[0]
        at_own_(r.mT, span, point.own, smoothing - 1.0)
        if weight is not None:
            weight[span] = r @ rows
        if bias is not None:
            bias[span] = r @ by_row
    return weight, bias
