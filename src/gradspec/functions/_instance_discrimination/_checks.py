"""Refuse a wrong call of the instance-discrimination loss before anything is computed."""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._checks import check_constant
from gradspec.functions._sharded import is_dtensor

CALL = "instance_discrimination_loss"


def checked_embeddings(x: Tensor, y: Tensor, memory: Tensor, *, whole: bool = True) -> Tensor:
    """Return x as the Function takes it: in the dtype of the bank, under autocast.

    The bank is `whole`, or the shard of a rank, which may have no row.

    Raises:
        TypeError: an argument is not a tensor, x or the bank is not floating, the two differ in dtype outside of
            autocast, or y is not int64.
        ValueError: shapes or devices do not belong together, the bank has no row, or it is differentiated.
    """
    for name, value in (("x", x), ("y", y), ("memory", memory)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{CALL}: {name} is a {type(value).__name__}, expected a tensor")
        if is_dtensor(value):
            raise TypeError(f"{CALL}: {name} is a DTensor. Call the function {CALL}, with a bank placed as Shard(0)")
    for name, value in (("x", x), ("memory", memory)):
        if not value.is_floating_point():
            raise TypeError(f"{CALL}: {name} has dtype {value.dtype}, expected a floating one")
    if y.dtype != torch.int64:
        raise TypeError(f"{CALL}: y has dtype {y.dtype}, expected torch.int64. Write y.long()")
    _check_shapes(x, y, memory)
    if whole and memory.shape[0] == 0:
        raise ValueError(f"{CALL}: the bank has no row, expected one at least")
    for name, value in (("y", y), ("memory", memory)):
        if value.device != x.device:
            raise ValueError(f"{CALL}: x is on {x.device} and {name} on {value.device}, expected one device")
    check_constant(CALL, "memory", memory)
    if x.dtype == memory.dtype:
        return x
    if torch.is_autocast_enabled(x.device.type):
        return x.to(memory.dtype)
    raise TypeError(
        f"{CALL}: x has dtype {x.dtype} and memory {memory.dtype}, expected one dtype. Write x.to({memory.dtype})"
    )


def _check_shapes(x: Tensor, y: Tensor, memory: Tensor) -> None:
    if x.ndim != 2 or memory.ndim != 2:
        raise ValueError(
            f"{CALL}: x has shape {tuple(x.shape)} and memory {tuple(memory.shape)}, expected (B, D) and (N, D)"
        )
    if x.shape[1] != memory.shape[1]:
        raise ValueError(f"{CALL}: x has {x.shape[1]} features and the bank {memory.shape[1]}, expected one number")
    if y.ndim != 1 or y.shape[0] != x.shape[0]:
        raise ValueError(
            f"{CALL}: x has shape {tuple(x.shape)} and y {tuple(y.shape)}, expected one instance for each row of x"
        )
