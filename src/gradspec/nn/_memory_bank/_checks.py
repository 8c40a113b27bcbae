"""Refuse a temperature, a momentum or a saved state that makes no memory bank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from torch import Tensor

from gradspec.functions._sharded import is_dtensor


def check_hyperparameters(owner: str, **given: float) -> None:
    """Refuse a temperature that is not above 0, and a momentum that is not between 0 and 1.

    Args:
        owner: the class, for the messages.
        given: `T` and `momentum`.

    Raises:
        TypeError: one is not a number.
        ValueError: one is out of its range.
    """
    for name, value in given.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{owner}: {name} is a {type(value).__name__}; write a number")
        if fault := fault_of(name, value):
            raise ValueError(f"{owner}: {fault}")


def fault_of(name: str, value: float) -> str:
    """Say what is wrong with a temperature or a momentum; nothing if it will do."""
    if name == "T" and not 0 < value < math.inf:
        return f"T is {value}; write a temperature above 0, such as 0.07"
    if name == "momentum" and not 0 <= value <= 1:
        return f"momentum is {value}; write the share of the old row, between 0 and 1"
    return ""


def faults_of(state_dict: Mapping[str, Any], prefix: str, memory: Tensor) -> list[str]:
    """Say what in a saved state does not suit a bank; a key that is missing is for torch to say.

    Args:
        state_dict: the saved state.
        prefix: what is before the keys of the bank.
        memory: the bank that it is meant for.
    """
    faults = []
    for name, shape in (("params", (2,)), ("memory", tuple(memory.shape))):
        value = state_dict.get(prefix + name)
        if value is not None and tuple(value.shape) != shape:
            faults.append(f"{prefix}{name} has shape {tuple(value.shape)} in the state, and {shape} here")
    if is_dtensor(state_dict.get(prefix + "memory")) and not is_dtensor(memory):
        faults.append(f"{prefix}memory is sharded in the state, and whole here. Shard the bank, or load it from a file")
    params = state_dict.get(prefix + "params")
    if params is not None and tuple(params.shape) == (2,) and not params.is_meta:
        values = zip(("T", "momentum"), params.tolist(), strict=True)
        faults += [f"{prefix}params: {fault}" for name, value in values if (fault := fault_of(name, value))]
    return faults
