"""The loss by its usual name, reduced over the rows."""

from __future__ import annotations

from torch import Tensor

from gradspec.functions._linear_cross_entropy._checks import check_reduction
from gradspec.functions._linear_cross_entropy._function import LinearCrossEntropy
from gradspec.functions._linear_cross_entropy._logits import Temperature


def linear_cross_entropy(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    *,
    bias: Tensor | None = None,
    temperature: Temperature = 1.0,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    margin: Tensor | float | None = None,
) -> Tensor:
    """Return the cross-entropy of the logits `(x @ weight.T + bias) / temperature`, without a buffer of B x N.

    Args:
        x: shape (B, D), floating.
        weight: shape (N, D), dtype and device of `x`: a row for each class.
        target: shape (B,), int64: the class of each row, from 0 to N - 1, or `ignore_index`.
        bias: shape (N,), dtype and device of `x`.
        temperature: a float above 0, or a 0-d tensor, whose value is not checked. No gradient flows to it.
        reduction: "mean" over the rows that count, "sum" or "none". The mean of no row is NaN, as that of
            `torch.nn.functional.cross_entropy` is.
        ignore_index: rows of this target do not count: their loss is 0, and no gradient comes from them.
        label_smoothing: from 0 to 1: the share of the target that is spread evenly over all classes.
        margin: a number, or shape (B,), dtype and device of `x`: what is taken from the product of each row with its
            own class, before the temperature. A gradient flows to a tensor.

    Returns:
        Shape (), or (B,) with `reduction="none"`; dtype and device of `x`; under autocast, the dtype of the weight.

    Raises:
        TypeError: as `LinearCrossEntropy.apply`.
        ValueError: as `LinearCrossEntropy.apply`, or the reduction is not one of its choices.
        IndexError: as `LinearCrossEntropy.apply`.

    Example:
        >>> import torch
        >>> import torch.nn.functional as F
        >>> x, weight, bias = torch.randn(8, 16), torch.randn(1000, 16), torch.randn(1000)
        >>> target = torch.arange(8)
        >>> loss = linear_cross_entropy(x, weight, target, bias=bias, label_smoothing=0.1)
        >>> torch.testing.assert_close(loss, F.cross_entropy(x @ weight.T + bias, target, label_smoothing=0.1))
    """
    check_reduction("linear_cross_entropy", reduction)
    loss = LinearCrossEntropy.apply(x, weight, target, bias, margin, temperature, ignore_index, label_smoothing)
    if reduction == "none":
        return loss
    total = loss.sum()
    return total / (target != ignore_index).sum() if reduction == "mean" else total
