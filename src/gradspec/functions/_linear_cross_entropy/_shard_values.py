r"""The numbers of the loss where each rank holds some rows of the weight, and all of them see all rows of the batch.

.. math::

    \ell_i = \log \sum_s e^{\ell_{is}}, \qquad
    \frac{\partial L_i}{\partial x_i} = \frac{1}{T} \sum_s \Bigl( e^{\ell_{is} - \ell_i}\, o_{is} - \sum_{j \in s} q_{ij}\, w_j \Bigr)

where rank :math:`s` attends to its rows: :math:`\ell_{is}` is the log-sum-exp of their logits, and :math:`o_{is}` their
softmax-weighted mean. It is `merge_by_log_sum_exp` with a sum over the ranks: a maximum and a sum of a few numbers for
each row, and of the terms of the gradient one sum that brings each row back to the rank that gave it.
"""  # noqa: E501 - one equation

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._log_sum_exp import Pair
from gradspec.functions._linear_cross_entropy._logits import Point, is_kept, less_target_, logits_in_one_buffer
from gradspec.functions._linear_cross_entropy._values import attended
from gradspec.functions._sharded import Batch


class ShardNumbers(NamedTuple):
    """The results of one forward pass on a rank. A row that does not count has zeros in all but the log-sum-exp."""

    #: Of the rows of this rank: shape (B,).
    loss: Tensor
    #: The derivative of each of these losses by its row of x: shape (B, D); None if no rank asks for it.
    gradient: Tensor | None
    #: The derivative of each of these losses by the logit of its own class: shape (B,).
    own_slope: Tensor
    #: Of the rows of all ranks, padded.
    log_sum_exp: Tensor
    #: Of these rows, p - q for the classes of the shard: shape (ranks * height, rows); None where it is not kept.
    by_logit: Tensor | None


class _Part(NamedTuple):
    """What the rows of a shard say of each row of x, before the ranks agree: the sum is `mass * exp(largest)`."""

    largest: Tensor
    mass: Tensor
    #: The softmax-weighted mean of the rows of the shard; None where the powers are kept.
    mean: Tensor | None
    #: `exp(z - largest)`: shape (ranks * height, rows); None where it is not kept.
    powers: Tensor | None


def shard_values(
    point: Point, counted: Tensor, batch: Batch, classes: int, *, of_rows: bool, keep: bool
) -> ShardNumbers:
    """Return the numbers of the rows of this rank.

    Args:
        point: the rows of all ranks, widened, with the shard of this rank as the weight; classes count from the
            shard's first, and are outside of it for the rows of the others.
        counted: which rows count: shape (ranks * height,).
        batch: where the rows of each rank are.
        classes: how many there are on all ranks.
        of_rows: whether a rank asks for the gradient by x.
        keep: whether this rank will be asked for the gradient by its shard, for which a few logits are kept.
    """
    temperature, smoothing = point.temperature, point.label_smoothing
    part = _part(point, keep and is_kept(point.x, point.weight.shape[0], classes))
    # With m = max_s m_s: l = m + log sum_s a_s e^{m_s - m}, and the weight of a rank is share / total.
    largest = batch.ranks.all_reduce(part.largest, "max")
    scale = (part.largest - largest).exp()
    share = part.mass * scale
    own_row, own_logit = _own(point)
    sums = [share, own_logit]
    if smoothing:
        sum_row, sum_logit = _sums(point)
        sums.append(sum_logit)
    total, own_logit, *sum_logits = batch.ranks.all_reduce(torch.stack(sums), "sum")
    log_sum_exp = largest + total.log()
    # sum_j q_ij z_ij = (1 - eps) z_iy + eps mean_j z_ij, and sum_j q_ij w_j likewise.
    expected = (1 - smoothing) * own_logit
    if smoothing:
        expected = expected + smoothing / classes * sum_logits[0]
    loss = largest - expected / temperature + total.log()
    slope = (own_logit / temperature - largest).exp() / total - (1 - smoothing) - smoothing / classes
    loss, slope = (torch.where(counted, value, 0)[batch.own] for value in (loss, slope))
    by_logit = None
    if part.powers is not None:
        by_logit = less_target_(part.powers.mul_((scale / total).unsqueeze(1)), point, _every(point), classes)
    if not of_rows:
        return ShardNumbers(loss, None, slope, log_sum_exp, by_logit)
    if by_logit is not None:
        row = by_logit @ point.weight.to(by_logit.dtype)
    else:
        assert part.mean is not None
        # Over the sum that was taken of them: exact where exp(l_s - l) has lost the digits of large logits.
        row = (share / total).unsqueeze(1) * part.mean - (1 - smoothing) * own_row
        if smoothing:
            row = row - smoothing / classes * sum_row
    row = torch.where(counted.unsqueeze(1), row / temperature, 0)
    return ShardNumbers(loss, batch.ranks.reduce_scatter(row)[: len(loss)], slope, log_sum_exp, by_logit)


def _every(point: Point) -> slice:
    return slice(0, point.weight.shape[0])


def _part(point: Point, keep: bool) -> _Part:
    none = torch.full_like(point.x[:, 0], -torch.inf)
    if not point.weight.shape[0]:
        return _Part(none, torch.zeros_like(none), torch.zeros_like(point.x), None)
    if not keep:
        mean, log_sum_exp = attended(point)
        return _Part(log_sum_exp, torch.ones_like(none), mean, None)
    z = logits_in_one_buffer(point, _every(point))
    largest = z.amax(1)
    # Logits that are all -inf have a power of 0 each.
    powers = z.sub_(largest.clamp_min(torch.finfo(z.dtype).min).unsqueeze(1)).exp_()
    return _Part(largest, powers.sum(1), None, powers)


def _own(point: Point) -> Pair:
    """Return the row and the logit of the class of each row of x; zeros where another rank has that class."""
    inside, size = (point.own >= 0) & (point.own < point.weight.shape[0]), point.weight.shape[0]
    if not size:
        return torch.zeros_like(point.x), torch.zeros_like(point.x[:, 0])
    place = point.own.clamp(0, size - 1)
    row = torch.where(inside.unsqueeze(1), point.weight[place].to(point.x.dtype), 0)
    logit = (point.x * row).sum(-1)
    if point.bias is not None:
        logit = logit + torch.where(inside, point.bias[place], 0)
    if point.margin is not None:
        logit = logit - torch.where(inside, point.margin, 0)
    return row, logit


def _sums(point: Point) -> Pair:
    """Return the sum of the rows of the shard, and for each row of x that of its logits with them."""
    row = point.weight.sum(0, dtype=point.x.dtype)
    logit = point.x @ row
    if point.bias is not None:
        logit = logit + point.bias.sum()
    if point.margin is not None:
        inside = (point.own >= 0) & (point.own < point.weight.shape[0])
        logit = logit - torch.where(inside, point.margin, 0)
    return row, logit
