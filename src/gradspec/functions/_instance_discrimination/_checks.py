"""Refuse a wrong call of the instance-discrimination loss before anything is computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradspec.functions._instance_discrimination._values import Temperature
from gradspec.functions._torch import has_tangent

CALL = "instance_discrimination_loss"
REDUCTIONS = ("none", "mean", "sum")


def checked_embeddings(x: Tensor, y: Tensor, memory: Tensor) -> Tensor:
    """Return x as the Function takes it: in the dtype of the bank, under autocast.

    Raises:
        TypeError: an argument is not a tensor, x or the bank is not floating, the two differ in dtype outside of
            autocast, or y is not int64.
        ValueError: shapes or devices do not belong together, the bank has no row, or it is differentiated.
    """
    for name, value in (("x", x), ("y", y), ("memory", memory)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{CALL}: {name} is a {type(value).__name__}, expected a tensor")
    for name, value in (("x", x), ("memory", memory)):
        if not value.is_floating_point():
            raise TypeError(f"{CALL}: {name} has dtype {value.dtype}, expected a floating one")
    if y.dtype != torch.int64:
        raise TypeError(f"{CALL}: y has dtype {y.dtype}, expected torch.int64. Write y.long()")
    _check_shapes(x, y, memory)
    for name, value in (("y", y), ("memory", memory)):
        if value.device != x.device:
            raise ValueError(f"{CALL}: x is on {x.device} and {name} on {value.device}, expected one device")
    _check_constant("memory", memory)
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
    if memory.shape[0] == 0:
        raise ValueError(f"{CALL}: the bank has no row, expected one at least")


def _check_constant(name: str, tensor: Tensor) -> None:
    if tensor.requires_grad or has_tangent(tensor):
        raise ValueError(f"{CALL}: {name} is differentiated, and no gradient flows to it. Give {name}.detach()")


def checked_temperature(temperature: Temperature) -> Temperature:
    """Return the temperature as the Function takes it: a float above 0, or a real 0-d tensor, whose value is not read.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is not above 0, not finite, no single number, or differentiated.
    """
    if isinstance(temperature, torch.SymFloat | torch.SymInt):
        return temperature  # a float that a dynamic compilation keeps open; float() would close it
    if isinstance(temperature, Tensor):
        if not temperature.is_floating_point():
            raise TypeError(f"{CALL}: temperature has dtype {temperature.dtype}, expected a floating one")
        if temperature.ndim:
            raise ValueError(f"{CALL}: temperature has shape {tuple(temperature.shape)}, expected one number, shape ()")
        _check_constant("temperature", temperature)
        return temperature
    if isinstance(temperature, bool) or not isinstance(temperature, float | int):
        raise TypeError(f"{CALL}: temperature is a {type(temperature).__name__}, expected a float or a 0-d tensor")
    if not 0 < temperature < math.inf:
        raise ValueError(f"{CALL}: temperature is {temperature}, expected a finite number above 0, such as 0.07")
    return float(temperature)


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that is none of the three."""
    if reduction not in REDUCTIONS:
        choices = ", ".join(map(repr, REDUCTIONS))
        raise ValueError(f"{CALL}: reduction is {reduction!r}, expected one of {choices}")
