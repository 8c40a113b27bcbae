"""The loss by its usual name, reduced over the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from gradspec.functions._linear_cross_entropy._checks import CALL, check_reduction, checked_call
from gradspec.functions._linear_cross_entropy._function import LinearCrossEntropy
from gradspec.functions._linear_cross_entropy._logits import Point
from gradspec.functions._linear_cross_entropy._shard_loss import sharded_loss
from gradspec.functions._sharded import is_dtensor

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


def linear_cross_entropy(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    *,
    bias: Tensor | None = None,
    temperature: float | Tensor = 1.0,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    margin: Tensor | float | None = None,
    mesh: DeviceMesh | None = None,
) -> Tensor:
    """Return the cross-entropy of the logits `(x @ weight.T + bias) / temperature`, without a buffer of B x N.

    Over a mesh, each rank holds some rows of the weight, gives a batch of its own, and gets the losses of that batch,
    as if it held the whole weight. The ranks make the call together. The mean over the ranks of what each returns is
    the loss of one process on the rows of all, and the gradient by the weight and by the bias is that of this mean, as
    `DistributedDataParallel` and `fully_shard` form it: an encoder in one of them needs no factor.

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
        mesh: of one dimension: each of its ranks gives its own `x`, `target` and `margin`, of any number of rows, and
            as `weight` and `bias` the rows that it holds, in the order of the ranks; `target` counts the classes of all
            ranks. None if the weight is whole, or a DTensor placed as `Shard(0)`, which has its mesh.

    Returns:
        Shape (), or (B,) with `reduction="none"`; dtype and device of `x`; under autocast, the dtype of the weight.
        Over a mesh, "mean" divides the sum of a rank by the rows that count on an average rank.

    Raises:
        TypeError: as `LinearCrossEntropy.apply`, or `mesh` is not a DeviceMesh.
        ValueError: as `LinearCrossEntropy.apply`, the reduction is not one of its choices, or the mesh does not suit
            the weight. It has more than one dimension, or is another one than that of the DTensor.
        IndexError: as `LinearCrossEntropy.apply`. Over a mesh every rank raises it.
        RuntimeError: the ranks of a mesh cannot make the call together. One of them refuses it or makes a different
            one, or it is under a transform of `torch.func`, in forward mode, or differentiated twice.

    Example:
        >>> import torch
        >>> import torch.nn.functional as F
        >>> x, weight, bias = torch.randn(8, 16), torch.randn(1000, 16), torch.randn(1000)
        >>> target = torch.arange(8)
        >>> loss = linear_cross_entropy(x, weight, target, bias=bias, label_smoothing=0.1)
        >>> torch.testing.assert_close(loss, F.cross_entropy(x @ weight.T + bias, target, label_smoothing=0.1))
    """
    check_reduction(CALL, reduction)
    if mesh is not None or is_dtensor(weight):

        def check(shard: Any, of_shard: Any) -> Point:
            options = (of_shard, margin, temperature, ignore_index, label_smoothing)
            return checked_call(x, shard, target, *options, whole=False)

        return sharded_loss(CALL, ("target", "weight"), (x, target, weight, bias), check, reduction, mesh)
    loss = LinearCrossEntropy.apply(x, weight, target, bias, margin, temperature, ignore_index, label_smoothing)
    if reduction == "none":
        return loss
    total = loss.sum()
    return total / (target != ignore_index).sum() if reduction == "mean" else total
