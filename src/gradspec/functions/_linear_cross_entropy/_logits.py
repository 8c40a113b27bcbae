r"""One call of the loss, and its logits, a few rows of the weight at a time.

.. math::

    z_{ij} = \frac{x_i \cdot w_j + b_j - m_i\,[j = y_i]}{T}, \qquad
    q_{ij} = (1 - \varepsilon)\,[j = y_i] + \frac{\varepsilon}{N}

The loss of row i is :math:`\log \sum_j e^{z_{ij}} - \sum_j q_{ij} z_{ij}`. The logits are linear in each of `x`, `w`,
`b` and `m`, so their tangent is made of the same products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

Temperature = float | Tensor

HALF_TYPES = (torch.float16, torch.bfloat16)
#: How many numbers a chunk holds at once, logits or a copy of rows: 8 MB in float32.
CHUNK_NUMBERS = 2**21
#: The same on a device, which computes a chunk of 8 MB faster than its kernels are launched: 64 MB.
DEVICE_NUMBERS = 2**24
#: A weight of so few rows has its logits in one small buffer, and no cancellation.
SMALL_WEIGHT = 512
#: How many derivatives by logits are kept for a gradient by the weight or the bias: 16 MB in float32.
KEPT_NUMBERS = 2**22
#: Of fewer features, to compute a logit again takes no longer than to read it: 2 D operations, and 4 bytes.
KEPT_FEATURES = 8


class Tangent(NamedTuple):
    """A direction in which the arguments move; None for one that does not."""

    #: Shape (B, D).
    x: Tensor | None = None
    #: Shape (N, D).
    weight: Tensor | None = None
    #: Shape (N,).
    bias: Tensor | None = None
    #: Shape (B,).
    margin: Tensor | None = None


class Point(NamedTuple):
    """The arguments of one call."""

    #: Shape (B, D).
    x: Tensor
    #: Shape (N, D).
    weight: Tensor
    #: Shape (B,), int64.
    target: Tensor
    #: Shape (N,).
    bias: Tensor | None
    #: Shape (B,), or None for a margin of 0.
    margin: Tensor | None
    temperature: Temperature
    #: None for a bank, where every row counts.
    ignore_index: int | None
    label_smoothing: float

    @property
    def counted(self) -> Tensor:
        """Whether a row counts, shape (B,)."""
        if self.ignore_index is None:
            return torch.ones_like(self.target, dtype=torch.bool)
        return self.target != self.ignore_index

    @property
    def own(self) -> Tensor:
        """The class of each row, shape (B,); 0 for a row that does not count."""
        return self.target if self.ignore_index is None else torch.where(self.counted, self.target, 0)

    def of_own_classes(self) -> Point:
        """Return the same call with `own` for its target, which is then worked out once; who counts is forgotten."""
        return self._replace(target=self.own, ignore_index=None)

    def detached(self) -> Point:
        """Return the same call, of constants."""
        # One by one: a type checker sees a tensor where a tensor was.
        return self._replace(
            x=self.x.detach(),
            weight=self.weight.detach(),
            bias=None if self.bias is None else self.bias.detach(),
            margin=None if self.margin is None else self.margin.detach(),
        )

    def widened(self) -> Point:
        """Return the same call in the dtype in which it is computed, but for the weight, which is read in chunks."""
        bias = None if self.bias is None else working(self.bias)
        return self._replace(x=working(self.x), bias=bias, margin=None if self.margin is None else working(self.margin))


def working(tensor: Tensor) -> Tensor:
    """Return a tensor in the dtype in which it is computed with."""
    return tensor.float() if tensor.dtype in HALF_TYPES else tensor


def is_kept(x: Tensor, rows: int, classes: int | None = None) -> bool:
    """Whether the derivatives by the logits are kept for a gradient by the weight; else the logits are computed again.

    Args:
        x: shape (B, D).
        rows: how many rows the weight has.
        classes: how many classes there are, if the weight is a shard.
    """
    is_worth_it = (classes or rows) <= SMALL_WEIGHT or x.shape[1] >= KEPT_FEATURES
    return is_worth_it and x.shape[0] * rows <= KEPT_NUMBERS


def most_numbers(tensor: Tensor, on_a_cpu: int | None = None) -> int:
    """Return how many numbers a chunk holds where a tensor is."""
    return (on_a_cpu or CHUNK_NUMBERS) if tensor.device.type == "cpu" else DEVICE_NUMBERS


def spans(x: Tensor, weight: Tensor, numbers: int | None = None) -> Iterator[slice]:
    """Yield slices of the rows of a weight, each so small that its logits, and a copy of it, are few numbers."""
    most, width, rows = most_numbers(weight, numbers), max(1, *x.shape), weight.shape[0]
    if 0 < rows * width <= most:
        yield slice(0, rows)  # without the height, which a compiler would bake in: one graph for each batch size
        return
    height = max(1, most // width)
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))


def spans_of(point: Point) -> Iterator[slice]:
    """Yield the slices of one call."""
    return spans(point.x, point.weight)


def at_own(chunk: Tensor, span: slice, own: Tensor, value: Tensor | float) -> Tensor:
    """Return a chunk of (B, rows) numbers with a value added where a row has its own class.

    The place is a clamped index and the value 0 outside of the chunk: no shape depends on the targets.
    """
    return chunk.scatter_add(1, *_place(chunk, span, own, value))


def at_own_(chunk: Tensor, span: slice, own: Tensor, value: Tensor | float) -> Tensor:
    """Do the same in place."""
    return chunk.scatter_add_(1, *_place(chunk, span, own, value))


def _place(chunk: Tensor, span: slice, own: Tensor, value: Tensor | float) -> tuple[Tensor, Tensor]:
    inside = (own >= span.start) & (own < span.stop)
    local = (own - span.start).clamp(0, span.stop - span.start - 1)
    return local.unsqueeze(1), (value * inside.to(chunk.dtype)).unsqueeze(1)


def logits(point: Point, span: slice) -> Tensor:
    """Return the logits of some classes, shape (B, rows)."""
    return _products(point, span) / point.temperature


def logits_in_one_buffer(point: Point, span: slice) -> Tensor:
    """Do the same for what no transform sees: a fresh buffer of a few megabytes takes as long as a product."""
    return _products(point, span).div_(point.temperature)


def _products(point: Point, span: slice) -> Tensor:
    z = point.x @ point.weight[span].to(point.x.dtype).mT
    if point.bias is not None:
        z = z + point.bias[span]
    if point.margin is not None:
        z = at_own(z, span, point.own, -point.margin)
    return z


def slopes(point: Point, tangent: Tangent, span: slice) -> Tensor:
    """Return the tangent of the logits of some classes, shape (B, rows)."""
    z_dot = point.x.new_zeros(point.x.shape[0], span.stop - span.start)
    if tangent.x is not None:
        z_dot = z_dot + tangent.x @ point.weight[span].to(point.x.dtype).mT
    if tangent.weight is not None:
        z_dot = z_dot + point.x @ tangent.weight[span].to(point.x.dtype).mT
    if tangent.bias is not None:
        z_dot = z_dot + tangent.bias[span].to(point.x.dtype)
    if tangent.margin is not None:
        z_dot = at_own(z_dot, span, point.own, -tangent.margin)
    return z_dot / point.temperature


def less_target(probabilities: Tensor, point: Point, span: slice) -> Tensor:
    """Return p - q for some classes: the derivative of the loss by the logits, shape (B, rows)."""
    smoothing = point.label_smoothing
    spread = probabilities - smoothing / point.weight.shape[0] if smoothing else probabilities
    return at_own(spread, span, point.own, smoothing - 1.0)


def less_target_(probabilities: Tensor, point: Point, span: slice, classes: int | None = None) -> Tensor:
    """Do the same in place.

    Args:
        probabilities: p, shape (B, rows).
        point: the call.
        span: the rows of the weight that are these classes.
        classes: how many there are, if the weight is a shard.
    """
    if point.label_smoothing:
        probabilities -= point.label_smoothing / (classes or point.weight.shape[0])
    return at_own_(probabilities, span, point.own, point.label_smoothing - 1.0)
