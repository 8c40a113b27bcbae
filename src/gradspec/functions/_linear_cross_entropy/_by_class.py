r"""The gradients by the weight and by the bias, a chunk of their rows at a time.

.. math::

    \bar{w}_j = \sum_i g_i (p_{ij} - q_{ij})\, x_i, \qquad
    \bar{b}_j = \sum_i g_i (p_{ij} - q_{ij}), \qquad
    g_i = \bar{L}_i / T

They need the log-sum-exp over all classes, and of the weight only the rows whose gradient is asked for: the rows of a
shard are as good as all of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._logits import Point, at_own_, less_target_, spans, working

#: How many logits a chunk of the weight's gradient holds: 4 MB in float32. Smaller ones stay nearer to a processor, but
#: threads wait for one another after each chunk, and on a busy machine that takes longer.
CACHED_NUMBERS = 2**20


def by_class_of(
    by_logit: Tensor, x: Tensor, by_row: Tensor, of_weight: bool, of_bias: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients by the weight and by the bias from p - q, which the forward pass has kept.

    Args:
        by_logit: p - q: shape (B, rows).
        x: shape (B, D); a half type is widened.
        by_row: the cotangent of each row over the temperature, 0 for a row that does not count: shape (B,).
        of_weight: whether the gradient by the weight is asked for.
        of_bias: whether that by the bias is.
    """
    weight = by_logit.mT @ (by_row.unsqueeze(1) * working(x)) if of_weight else None
    bias = by_logit.mT @ by_row if of_bias else None
    return (None if weight is None else weight.to(x.dtype)), (None if bias is None else bias.to(x.dtype))


def by_class(
    point: Point, by_row: Tensor, log_sum_exp: Tensor, of_weight: bool, of_bias: bool, classes: int | None = None
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients by the weight and by the bias, each of their rows written once.

    Args:
        point: the call; its weight and its bias may be a shard, and its classes then count from the shard's first.
        by_row: the cotangent of each row over the temperature, 0 for a row that does not count: shape (B,).
        log_sum_exp: of the logits of all classes: shape (B,).
        of_weight: whether the gradient by the weight is asked for.
        of_bias: whether that by the bias is.
        classes: how many classes there are, if the weight is a shard.
    """
    given = point.of_own_classes().widened()
    # The cotangent goes to x, which is small, rather than to the chunk: sum_i g_i r_ij x_i = sum_i r_ij (g_i x_i).
    rows = by_row.unsqueeze(1) * given.x
    parts = list(spans(given.x, point.weight, CACHED_NUMBERS))
    queries = given.x / point.temperature
    # Made from what the cotangent is in, so that a batched cotangent gets a batch of gradients.
    weight = rows.new_empty(point.weight.shape, dtype=point.weight.dtype) if of_weight else None
    bias = by_row.new_empty(point.weight.shape[:1], dtype=point.weight.dtype) if of_bias else None
    for span in parts:
        # Transposed, a class a row: r = exp(z - l) - q is written over the logits.
        r = torch.addmm(-log_sum_exp, point.weight[span].to(queries.dtype), queries.mT)
        if given.bias is not None:
            r += (given.bias[span] / point.temperature).unsqueeze(1)
        if given.margin is not None:
            at_own_(r.mT, span, given.own, -given.margin / point.temperature)
        r.exp_()
        less_target_(r.mT, given, span, classes)
        if weight is not None:
            weight[span] = r @ rows
        if bias is not None:
            bias[span] = r @ by_row
    return weight, bias
