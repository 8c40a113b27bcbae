r"""The derivative of the loss along a tangent, and the gradient of that: forward mode and the second derivatives.

With :math:`s_{ij}` the tangent of the logits, :math:`a_i = \sum_j p_{ij} s_{ij}` their mean, and :math:`\bar{L}` the
cotangent of the loss,

.. math::

    \dot{L}_i = \sum_j (p_{ij} - q_{ij})\, s_{ij}, \qquad
    \frac{\partial}{\partial z_{ij}} \sum_i \bar{L}_i \dot{L}_i = \bar{L}_i\, p_{ij} (s_{ij} - a_i), \qquad
    \frac{\partial}{\partial s_{ij}} \sum_i \bar{L}_i \dot{L}_i = \bar{L}_i\, (p_{ij} - q_{ij})

The Hessian is symmetric: its product with a tangent and with a cotangent are one function. All of it is plain torch, a
chunk of the weight at a time, so that it has derivatives itself; these hold the chunks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._logits import (
    Point,
    Tangent,
    at_own,
    less_target,
    logits,
    slopes,
    spans_of,
    working,
)
from gradspec.functions._torch import without_autocast


class SecondOrder(NamedTuple):
    """The gradient of `sum(cotangent * directional)`, in the dtype in which it is computed."""

    #: By x: shape (B, D).
    x: Tensor
    #: By the weight: shape (N, D).
    weight: Tensor
    #: By the bias: shape (N,).
    bias: Tensor
    #: By the margin: shape (B,).
    margin: Tensor
    #: By the cotangent: the derivative of each loss along the tangent, shape (B,).
    cotangent: Tensor


# Softmax has the derivative dp_j/dz_k = p_j ([j = k] - p_k) (Bridle, Probabilistic interpretation of feedforward
# classification network outputs, 1990), and log-sum-exp dl/dz_j = p_j. So of one row, with L = l - sum_j q_j z_j and s
# the tangent of z,
#   dL/dz_j             = p_j - q_j
#   L'                  = sum_j (p_j - q_j) s_j                          the derivative along the tangent
#   dL'/ds_j            = p_j - q_j                                     it is linear in s
#   dL'/dz_j            = sum_k s_k p_k ([j = k] - p_j) = p_j (s_j - a)  with a = sum_k p_k s_k; q is a constant
# The last is the Hessian times s: p (s - a) = (diag(p) - p p^T) s, without a matrix of N x N (Pearlmutter, Fast exact
# multiplication by the Hessian, 1994). It is centred before any product: a large mean of s costs no digits.
#
# Where one class has nearly all of the probability, s_j - a is p_j times as accurate if s is taken from that of this
# class first: sum_j p_j (s_j - c) is then nearly 0, where sum_j p_j s_j is as large as s. As sum_j p_j = 1, no number
# c changes p_j (s_j - a), so c is a constant for each derivative of it.


def directional(point: Point, tangent: Tangent) -> Tensor:
    """Return the derivative of the loss of each row along a tangent: shape (B,), dtype of x."""
    with without_autocast(point.x):
        given, moving = point.widened(), _widened(tangent)
        log_sum_exp = _log_sum_exp(given)
        rows = (
            (less_target(_probabilities(given, span, log_sum_exp), given, span) * slopes(given, moving, span)).sum(-1)
            for span in spans_of(given)
        )
        return torch.where(point.counted, sum(rows, given.x.new_zeros(point.target.shape)), 0).to(point.x.dtype)


def second_order(point: Point, cotangent: Tensor, tangent: Tangent) -> SecondOrder:
    """Return the gradient of `sum(cotangent * directional(point, tangent))` by all that is in it."""
    with without_autocast(point.x):
        given, moving = point.widened(), _widened(tangent)
        by_row = torch.where(point.counted, working(cotangent), 0).unsqueeze(1)
        log_sum_exp = _log_sum_exp(given)
        origin = _slope_of_largest(given, moving)
        mean = total = given.x.new_zeros(*point.target.shape, 1)
        for span in spans_of(given):
            p, s = _probabilities(given, span, log_sum_exp), slopes(given, moving, span) - origin
            mean = mean + (p * s).sum(-1, keepdim=True)
            total = total + (less_target(p, given, span) * s).sum(-1, keepdim=True)
        parts = [_part(given, moving, span, log_sum_exp, (origin, mean), by_row) for span in spans_of(given)]
        by_x, by_weight, by_bias, by_margin = zip(*parts, strict=True)
        return SecondOrder(
            sum(by_x[1:], by_x[0]),
            torch.cat(by_weight),
            torch.cat(by_bias),
            sum(by_margin[1:], by_margin[0]),
            torch.where(point.counted, total.squeeze(1), 0),
        )


def _part(
    point: Point,
    tangent: Tangent,
    span: slice,
    log_sum_exp: Tensor | None,
    centre: tuple[Tensor, Tensor],
    by_row: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    p, temperature = _probabilities(point, span, log_sum_exp), point.temperature
    origin, mean = centre
    by_z = by_row * p * (slopes(point, tangent, span) - origin - mean) / temperature
    by_s = by_row * less_target(p, point, span) / temperature
    # z = (x w + b - m [own]) / T and s = (x' w + x w' + b' - m' [own]) / T: each by x, w, b and m. With Z = dL'/dz / T
    # and S = dL'/ds / T, each times the cotangent of its row, the chain rule gives
    #   by x = Z w + S w'      by w = Z^T x + S^T x'      by b = sum_i Z_i      by m_i = -Z_iy
    # where b and m have no second term: s depends on their tangents only.
    by_x = by_z @ point.weight[span].to(p.dtype)
    by_weight = by_z.mT @ point.x
    if tangent.weight is not None:
        by_x = by_x + by_s @ tangent.weight[span].to(p.dtype)
    if tangent.x is not None:
        by_weight = by_weight + by_s.mT @ tangent.x
    own = at_own(torch.zeros_like(by_z), span, point.own, 1.0)
    return by_x, by_weight, by_z.sum(0), -(by_z * own).sum(-1)


def _probabilities(point: Point, span: slice, log_sum_exp: Tensor | None) -> Tensor:
    z = logits(point, span)
    return z.softmax(-1) if log_sum_exp is None else (z - log_sum_exp.unsqueeze(1)).exp()


def _log_sum_exp(point: Point) -> Tensor | None:
    """Return None for a call of one chunk, which finds its own sum: z - l loses the digits of large logits."""
    parts = list(spans_of(point))
    return None if len(parts) == 1 else torch.stack([logits(point, s).logsumexp(-1) for s in parts]).logsumexp(0)


def _slope_of_largest(point: Point, tangent: Tangent) -> Tensor:
    """Return the tangent of the largest logit of each row, a constant: shape (B, 1)."""
    point, moving = point.detached(), Tangent(*(None if value is None else value.detach() for value in tangent))
    tops = [logits(point, span).max(-1) for span in spans_of(point)]
    best = torch.stack([top.values for top in tops]).argmax(0, keepdim=True)
    places = [top.indices + span.start for top, span in zip(tops, spans_of(point), strict=True)]
    largest = torch.stack(places).gather(0, best).squeeze(0)
    slope = point.x.new_zeros(point.target.shape)
    if moving.x is not None:
        slope = slope + (moving.x * point.weight[largest].to(slope.dtype)).sum(-1)
    if moving.weight is not None:
        slope = slope + (point.x * moving.weight[largest].to(slope.dtype)).sum(-1)
    if moving.bias is not None:
        slope = slope + moving.bias[largest].to(slope.dtype)
    if moving.margin is not None:
        slope = slope - torch.where(largest == point.own, moving.margin, 0)
    return (slope / point.temperature).unsqueeze(1)


def _widened(tangent: Tangent) -> Tangent:
    return Tangent(*(None if value is None else working(value) for value in tangent))
