"""Shared parts of the laws on effects: a tensor's bits, its version counter and its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from gradspec.laws.tensor.support._compare import element


@dataclass(frozen=True)
class Snapshot:
    """The values and the version counter of a tensor at one moment."""

    values: Tensor
    version: int

    @classmethod
    def of(cls, tensor: Tensor) -> Snapshot:
        """Take a snapshot."""
        return cls(_values(tensor), tensor._version)

    def has_bits_of(self, tensor: Tensor) -> bool:
        """Return whether a tensor has the values that there were, whatever its version counter says."""
        return torch.equal(_bits(self.values), _bits(_values(tensor)))

    def place_of_change(self, tensor: Tensor) -> dict[str, str]:
        """Return the first element that has changed, as the facts of a finding; none if none has, or the shape has."""
        now = _values(tensor)
        if now.shape != self.values.shape or not now.numel():
            return {}
        differs = (_bits(self.values) != _bits(now)).view(now.numel(), -1).any(1)
        if not bool(differs.any()):
            return {}
        return element(int(differs.int().argmax()), now, self.values)

    def change_of(self, tensor: Tensor) -> str:
        """Say what has changed since; empty if nothing has."""
        if not self.has_bits_of(tensor):
            return "its values have changed"
        if tensor._version != self.version:
            return f"its version counter has moved by {tensor._version - self.version}"
        return ""


def snapshots(tensors: Mapping[str, Tensor]) -> dict[str, Snapshot]:
    """Take a snapshot of each tensor."""
    return {name: Snapshot.of(tensor) for name, tensor in tensors.items()}


@dataclass(frozen=True)
class Change:
    """What has happened to a tensor since its snapshot."""

    name: str
    #: In words.
    how: str
    #: The first element that has changed, as the facts of a finding; empty if only the version counter has moved.
    place: Mapping[str, str]


def first_change(before: Mapping[str, Snapshot], tensors: Mapping[str, Tensor]) -> Change | None:
    """Return what has happened to the first tensor that has changed; None if none has."""
    for name, snapshot in before.items():
        if how := snapshot.change_of(tensors[name]):
            return Change(name, how, snapshot.place_of_change(tensors[name]))
    return None


def state_of(value: Any, depth: int = 3) -> Any:
    """Return the plain numbers and words in an object, list or dict, to see whether a call changes one; no tensors."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    if not depth or isinstance(value, Tensor | torch.nn.Module | type | ModuleType) or callable(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): state_of(held, depth - 1) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [state_of(held, depth - 1) for held in value]
    return {name: state_of(held, depth - 1) for name, held in getattr(value, "__dict__", {}).items()}


def difference(before: Any, after: Any, name: str) -> str:
    """Return which part of such a state has changed, and how: "group.size was 4, and is 1"; empty if none has."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if said := difference(before.get(key), after.get(key), f"{name}.{key}"):
                return said
        return ""
    is_same = type(before) is type(after) and (before == after or (before != before and after != after))
    return "" if is_same else f"{name} was {before!r:.60}, and is {after!r:.60}"


def overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors span common bytes (torch's own test does not see memory shared through numpy)."""
    if a.device != b.device or 0 in (a.numel(), b.numel()) or not a.layout == b.layout == torch.strided:
        return False
    if 0 in (a.data_ptr(), b.data_ptr()):
        return False  # a subclass that has no memory of its own
    (low_a, high_a), (low_b, high_b) = _span(a), _span(b)
    return low_a < high_b and low_b < high_a


def telling_strides(tensor: Tensor) -> list[int]:
    """Return the strides that say something: not of a dimension of one element, nor of a tensor without elements."""
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1] if tensor.numel() else []


def _span(tensor: Tensor) -> tuple[int, int]:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _values(tensor: Tensor) -> Tensor:
    tensor = tensor.int_repr() if tensor.is_quantized else tensor.detach()
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return dense.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def _bits(values: Tensor) -> Tensor:
    # Bits and not values: NaN differs from itself, and -0.0 equals 0.0.
    return values.flatten().view(torch.uint8)
