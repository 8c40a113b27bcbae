r"""The numbers of the loss and of its gradient by x, computed together in the forward pass.

.. math::

    L_i = \ell_i - \sum_j q_{ij} z_{ij}, \qquad \ell_i = \log \sum_j e^{z_{ij}}, \qquad
    \frac{\partial L_i}{\partial x_i} = \frac{1}{T} \Bigl( \sum_j p_{ij}\, w_j - \sum_j q_{ij}\, w_j \Bigr), \qquad
    p_{ij} = e^{z_{ij} - \ell_i}

Half types are read as they are, and computed in float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.functions._linear_cross_entropy._attention import attend
from gradspec.functions._linear_cross_entropy._log_sum_exp import Pair, merged
from gradspec.functions._linear_cross_entropy._logits import (
    SMALL_WEIGHT,
    Point,
    is_kept,
    less_target_,
    logits,
    logits_in_one_buffer,
    spans_of,
    working,
)
from gradspec.functions._linear_cross_entropy._turns import in_turn
from gradspec.functions._torch import without_autocast


class Numbers(NamedTuple):
    """The results of one forward pass over the weight. A row that does not count has zeros."""

    #: Shape (B,), the dtype of x.
    loss: Tensor
    #: The derivative of each loss by its row of x: shape (B, D), the dtype of x.
    gradient: Tensor
    #: Shape (B,), in the dtype in which it is computed.
    log_sum_exp: Tensor
    #: The derivative of each loss by the logit of its own class: shape (B,), in the same.
    own_slope: Tensor
    #: The derivative of each loss by each logit, p - q, in the same: shape (B, N), or (B, 0) where it is not kept.
    by_logit: Tensor


class Values(Function):
    """Loss and gradient by flash attention; the Functions that use them say their derivatives."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        """Return the `Numbers` of a call: those of a `Point`, and whether to keep its few logits."""
        given, keep = Point(*arguments[:-1]), arguments[-1]
        check_targets(given)
        counted = None if given.ignore_index is None else given.counted
        given = given.of_own_classes()
        batch, size = given.x.shape[0], given.weight.shape[0]
        if 0 in given.x.shape[:-1]:
            none = working(given.x.new_zeros(given.x.shape[:-1]))
            row = torch.zeros_like(given.x)
            return none.to(given.x.dtype), row, none.clone(), none.clone(), none.new_zeros(0, size)
        with without_autocast(given.x):
            keep = keep and is_kept(given.x, size)
            small = keep or size <= SMALL_WEIGHT or 0 in given.x.shape
            found = (_of_a_small_weight if small else _of_a_large_weight)(given.widened())
        loss, gradient, log_sum_exp, slope, by_logit = found
        if counted is not None:
            loss, slope = (torch.where(counted, value, 0) for value in (loss, slope))
            gradient = torch.where(counted.unsqueeze(1), gradient, 0)
        by_logit = by_logit if keep else by_logit.new_empty(batch, 0)
        return loss.to(given.x.dtype), gradient.to(given.x.dtype), log_sum_exp, slope, by_logit

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Say that these are numbers."""
        ctx.mark_non_differentiable(*output)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[None, ...]:
        """Return nothing."""
        return None, None, None, None, None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Make one batch of all rows where they share one weight, bias and temperature; else take turns."""
        given, dims = Point(*arguments[:-1]), dict(zip(Point._fields, in_dims[:-1], strict=True))
        if any(dims[name] is not None for name in ("weight", "bias", "temperature")):
            return in_turn(Values, info, in_dims, arguments)

        def rows(tensor: Tensor, dim: int | None) -> Tensor:
            each = tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            return each.flatten(0, 1)

        x, target = rows(given.x, dims["x"]), rows(given.target, dims["target"])
        margin = None if given.margin is None else rows(given.margin, dims["margin"])
        found = values(given._replace(x=x, target=target, margin=margin), keep=arguments[-1])
        batch = len(x) // max(1, info.batch_size)
        return tuple(value.view(info.batch_size, batch, *value.shape[1:]) for value in found), (0,) * len(found)


def values(point: Point, *, keep: bool = False) -> Numbers:
    """Return the numbers of a call, whatever transforms are at work on its arguments.

    Args:
        point: the call.
        keep: whether a gradient by the weight or the bias will be asked for, for which a few logits are kept.
    """
    return Numbers(*Values.apply(*point, keep))  # type: ignore[no-untyped-call]


# Of one row, with L = l - sum_j q_j z_j, l = log sum_j e^{z_j} and z_j = (x . w_j + b_j - m [j = y]) / T:
#   dl/dz_j = e^{z_j - l} = p_j                    so dL/dz_j = p_j - q_j
#   dz_j/dx = w_j / T                              so dL/dx   = (sum_j p_j w_j - sum_j q_j w_j) / T
#   own_slope = dL/dz_y = p_y - q_y, where q_y = (1 - eps) + eps / N; the gradient by m is -own_slope / T
# The first sum over j is attention; the second needs the row of the class and the mean of all rows.


def _of_a_large_weight(point: Point) -> Numbers:
    x, weight, temperature = point.x, point.weight, point.temperature
    mean, log_sum_exp = attended(point)
    # sum_j q_ij z_ij = (1 - eps) z_iy + eps mean_j z_ij, and sum_j q_ij w_j likewise; z is linear in w.
    own = weight[point.own].to(x.dtype)
    own_logit = (x * own).sum(-1)
    if point.bias is not None:
        own_logit = own_logit + point.bias[point.own]
    if point.margin is not None:
        own_logit = own_logit - point.margin
    expected, row = own_logit, own
    smoothing, size = point.label_smoothing, weight.shape[0]
    if smoothing:
        mean_row = weight.mean(0, dtype=x.dtype)
        mean_logit = x @ mean_row
        if point.bias is not None:
            mean_logit = mean_logit + point.bias.mean()
        if point.margin is not None:
            mean_logit = mean_logit - point.margin / size
        expected = (1 - smoothing) * own_logit + smoothing * mean_logit
        row = (1 - smoothing) * own + smoothing * mean_row
    own_slope = (own_logit / temperature - log_sum_exp).exp() - (1 - smoothing) - smoothing / size
    gradient, loss = (mean - row) / temperature, log_sum_exp - expected / temperature
    return Numbers(loss, gradient, log_sum_exp, own_slope, loss.new_empty(0))


def attended(point: Point) -> Pair:
    """Return the mean of the rows of the weight under the softmax of the logits, and their log-sum-exp."""
    x, weight, bias, temperature = point.x, point.weight, point.bias, point.temperature
    if point.margin is None:
        return attend(x / temperature, weight, None if bias is None else bias / temperature)
    # Of what it weighs, flash attention knows no single place: chunks in plain torch, with the margin in them.
    return merged(_attended(point, span) for span in spans_of(point))


def _attended(point: Point, span: slice) -> Pair:
    z = logits(point, span)
    return (z.softmax(-1) @ point.weight[span].to(z.dtype)).unsqueeze(0), z.logsumexp(-1).unsqueeze(0)


def _of_a_small_weight(point: Point) -> Numbers:
    every = slice(0, point.weight.shape[0])
    z, index = logits_in_one_buffer(point, every), point.own.unsqueeze(1)
    # From here to p - q in the same buffer, with z less its largest: log p_y keeps the digits of a small loss.
    top = z.amax(-1, keepdim=True)
    own, smoothing = z.sub_(top).gather(1, index), point.label_smoothing
    mean = z.mean(-1) if smoothing else None
    total = z.exp_().sum(-1, keepdim=True)
    log_total = total.log().squeeze(1)
    # sum_j q_j = 1, so l - sum_j q_j z_j = -sum_j q_j (z_j - l) = -(1 - eps) log p_y - eps mean_j log p_j.
    loss = log_total - own.squeeze(1)
    if mean is not None:
        loss = (1 - smoothing) * loss + smoothing * (log_total - mean)
    # p - 1 at y: a small gradient is not the difference of two large means.
    by_logit = less_target_(z.div_(total), point, every)
    gradient = by_logit @ point.weight.to(z.dtype) / point.temperature
    return Numbers(loss, gradient, top.squeeze(1) + log_total, by_logit.gather(1, index).squeeze(1), by_logit)


def check_targets(point: Point) -> None:
    """Refuse a class that the weight does not have: at once on a CPU, on the device without a wait elsewhere.

    Raises:
        IndexError: an element of `target` is below 0 or not below N, and is not `ignore_index`.
    """
    own, size = point.own, point.weight.shape[0]
    target, weight = ("linear_cross_entropy: target", "weight")
    if point.ignore_index is None:
        target, weight = ("instance_discrimination_loss: y", "bank")
    if type(own) is Tensor and own.device.type == "cpu":
        outside = own[(own < 0) | (own >= size)]
        if outside.numel():
            raise IndexError(f"{target} holds {int(outside[0])}, and the {weight} has rows 0 to {size - 1}")
        return
    message = f"{target} is out of range, the {weight} has rows 0 to {size - 1}"
    torch._assert_async(((own >= 0) & (own < size)).all(), message)
