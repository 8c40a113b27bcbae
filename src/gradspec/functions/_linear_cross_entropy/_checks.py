"""Refuse a wrong call of the linear cross-entropy before anything is computed."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._logits import Point, Temperature
from gradspec.functions._sharded import is_dtensor
from gradspec.functions._torch import has_tangent

CALL = "linear_cross_entropy"
REDUCTIONS = ("none", "mean", "sum")


def checked_call(
    x: Any,
    weight: Any,
    target: Any,
    bias: Any,
    margin: Any,
    temperature: Any,
    ignore_index: Any,
    label_smoothing: Any,
    *,
    whole: bool = True,
) -> Point:
    """Return the call as the Function takes it: in one dtype, that of the weight, with a margin for each row.

    The weight is `whole`, or the shard of a rank, which may have no row.

    Raises:
        TypeError: an argument is of a wrong type or dtype, or the floating ones differ in dtype outside of autocast.
        ValueError: shapes or devices do not belong together, the weight has no row, the temperature is not above 0 or
            is differentiated, or the label smoothing is not in 0 to 1.
    """
    floating = {"x": x, "weight": weight}
    if bias is not None:
        floating["bias"] = bias
    if isinstance(margin, Tensor):
        floating["margin"] = margin
    for name, value in (*floating.items(), ("target", target)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{CALL}: {name} is a {type(value).__name__}, expected a tensor")
        if is_dtensor(value):
            raise TypeError(f"{CALL}: {name} is a DTensor. Call the function {CALL}, with a weight placed as Shard(0)")
    for name, value in floating.items():
        if not value.is_floating_point():
            raise TypeError(f"{CALL}: {name} has dtype {value.dtype}, expected a floating one")
    if target.dtype != torch.int64:
        raise TypeError(f"{CALL}: target has dtype {target.dtype}, expected torch.int64. Write target.long()")
    _check_shapes(x, weight, target, bias)
    if whole and weight.shape[0] == 0:
        raise ValueError(f"{CALL}: the weight has no row, expected one at least")
    for name, value in (*floating.items(), ("target", target)):
        if value.device != x.device:
            raise ValueError(f"{CALL}: x is on {x.device} and {name} on {value.device}, expected one device")
    for name, value in floating.items():
        floating[name] = _of_one_dtype(name, value, weight)
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, int | torch.SymInt):
        raise TypeError(f"{CALL}: ignore_index is a {type(ignore_index).__name__}, expected an int")
    return Point(
        floating["x"],
        weight,
        target,
        floating.get("bias"),
        _checked_margin(floating.get("margin", margin), floating["x"]),
        checked_temperature(CALL, temperature),
        cast(int, ignore_index),
        _checked_smoothing(label_smoothing),
    )


def _check_shapes(x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None) -> None:
    shape = tuple(x.shape)
    if x.ndim != 2 or weight.ndim != 2:
        more = ". Write x.flatten(0, -2) and target.flatten()" if x.ndim > 2 and weight.ndim == 2 else ""
        raise ValueError(
            f"{CALL}: x has shape {shape} and weight {tuple(weight.shape)}, expected (B, D) and (N, D){more}"
        )
    if x.shape[1] != weight.shape[1]:
        raise ValueError(f"{CALL}: x has {shape[1]} features and the weight {weight.shape[1]}, expected one number")
    if target.ndim != 1 or target.shape[0] != x.shape[0]:
        raise ValueError(
            f"{CALL}: x has shape {shape} and target {tuple(target.shape)}, expected one class for each row of x"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"{CALL}: weight has shape {tuple(weight.shape)} and bias {tuple(bias.shape)}, expected one number for "
            "each row of the weight"
        )


def _of_one_dtype(name: str, value: Tensor, weight: Tensor) -> Tensor:
    if value.dtype == weight.dtype:
        return value
    if torch.is_autocast_enabled(value.device.type):
        return value.to(weight.dtype)
    raise TypeError(
        f"{CALL}: {name} has dtype {value.dtype} and weight {weight.dtype}, expected one dtype. "
        f"Write {name}.to({weight.dtype})"
    )


def _checked_margin(margin: Any, x: Tensor) -> Tensor | None:
    if margin is None:
        return None
    if isinstance(margin, Tensor):
        if margin.shape != x.shape[:1]:
            raise ValueError(
                f"{CALL}: margin has shape {tuple(margin.shape)}, expected a number, or one for each row of x, "
                f"shape {tuple(x.shape[:1])}"
            )
        return margin
    if isinstance(margin, bool) or not isinstance(margin, float | int | torch.SymFloat | torch.SymInt):
        raise TypeError(f"{CALL}: margin is a {type(margin).__name__}, expected a number or a tensor of shape (B,)")
    return x.new_full(x.shape[:1], margin)  # type: ignore[arg-type]  # torch takes its own SymFloat


def _checked_smoothing(label_smoothing: Any) -> float:
    if isinstance(label_smoothing, torch.SymFloat | torch.SymInt):
        return cast(float, label_smoothing)
    if isinstance(label_smoothing, bool) or not isinstance(label_smoothing, float | int):
        raise TypeError(f"{CALL}: label_smoothing is a {type(label_smoothing).__name__}, expected a float")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{CALL}: label_smoothing is {label_smoothing}, expected a number from 0 to 1")
    return float(label_smoothing)


def checked_temperature(call: str, temperature: Any) -> Temperature:
    """Return the temperature as the Function takes it: a float above 0, or a real 0-d tensor, whose value is not read.

    Args:
        call: the function that was called, for the message.
        temperature: what was given.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is not above 0, not finite, no single number, or differentiated.
    """
    if isinstance(temperature, torch.SymFloat | torch.SymInt):
        return cast(float, temperature)  # a float that a dynamic compilation keeps open; float() would close it
    if isinstance(temperature, Tensor):
        if not temperature.is_floating_point():
            raise TypeError(f"{call}: temperature has dtype {temperature.dtype}, expected a floating one")
        if temperature.ndim:
            raise ValueError(f"{call}: temperature has shape {tuple(temperature.shape)}, expected one number, shape ()")
        check_constant(call, "temperature", temperature)
        return temperature
    if isinstance(temperature, bool) or not isinstance(temperature, float | int):
        raise TypeError(f"{call}: temperature is a {type(temperature).__name__}, expected a float or a 0-d tensor")
    if not 0 < temperature < math.inf:
        raise ValueError(f"{call}: temperature is {temperature}, expected a finite number above 0, such as 0.07")
    return float(temperature)


def check_constant(call: str, name: str, tensor: Tensor) -> None:
    """Refuse an argument that is differentiated, and to which no gradient flows."""
    if tensor.requires_grad or has_tangent(tensor):
        raise ValueError(f"{call}: {name} is differentiated, and no gradient flows to it. Give {name}.detach()")


def check_reduction(call: str, reduction: str) -> None:
    """Refuse a reduction that is none of the three."""
    if reduction not in REDUCTIONS:
        choices = ", ".join(map(repr, REDUCTIONS))
        raise ValueError(f"{call}: reduction is {reduction!r}, expected one of {choices}")
