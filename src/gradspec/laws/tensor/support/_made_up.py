"""A call that nobody has made: on a CUDA device an index that is out of range ends all work, and on a CPU it raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable, fresh


def can_be_made(function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether a function can be given arguments of other sizes or with other integers than those of its calls.

    On a CUDA device these are tried on the CPU first, if they have tensors of integers.
    """
    tensors = [value for value in inputs.values.values() if isinstance(value, Tensor) and value.is_cuda]
    if not any(not differentiable(tensor) and tensor.dtype != torch.bool for tensor in tensors):
        return True
    values = {name: fresh(value, device="cpu") for name, value in inputs.values.items()}
    try:
        with torch.no_grad():
            function(*values.values())
    except Exception:
        return False
    return True
