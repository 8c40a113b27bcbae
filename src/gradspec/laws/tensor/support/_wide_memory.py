"""What memory of a half type would hold if it were of float32: numbers kept beside it, for a dispatch mode."""

from __future__ import annotations

from typing import Any, TypeGuard

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def is_half_tensor(value: Any) -> TypeGuard[Tensor]:
    """Whether this is a tensor of a half type."""
    return isinstance(value, Tensor) and value.dtype in HALF


def names_half(value: Any) -> bool:
    """Whether this is a half type itself."""
    return isinstance(value, torch.dtype) and value in HALF


class WideMemory:
    """The numbers in float32 of tensors of a half type. What shares memory shares them too."""

    def __init__(self) -> None:
        #: By the address of a memory: it, so that no other one gets its address, and its numbers in their order.
        self._kept: dict[int, tuple[torch.UntypedStorage, Tensor]] = {}

    def __contains__(self, value: Any) -> bool:
        """Whether numbers are kept for the memory of a tensor."""
        return is_half_tensor(value) and address(value) in self._kept

    def shown(self, value: Tensor) -> Tensor:
        """Return the numbers that a tensor shows of its memory, as a view: what is written there is kept."""
        memory = value.untyped_storage()
        if address(value) not in self._kept:
            whole = torch.empty(0, dtype=value.dtype, device=value.device).set_(memory)
            self._kept[address(value)] = memory, whole.float()
        return self._kept[address(value)][1].as_strided(value.shape, value.stride(), value.storage_offset())

    def wide(self, value: Any) -> Any:
        """Return an argument of an operation as float32 would have it, for what is of a half type, or names one."""
        if not is_half_tensor(value):
            return torch.float32 if names_half(value) else value
        return self.shown(value).clone() if value in self else value.float()

    def put(self, value: Tensor, exact: Tensor) -> Tensor:
        """Write to a tensor what its dtype holds of a result, and keep that; return the tensor."""
        self.shown(value.copy_(exact)).copy_(exact)
        return value


def address(value: Tensor) -> int:
    """Return what tells the memory of a tensor from other ones that are alive."""
    return int(value.untyped_storage()._cdata)
