"""Calls of other sizes and layouts than a case has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gradspec.laws.operator.support._call import Call


def variants(call: Call) -> Iterator[tuple[str, Call]]:
    """Yield calls like a given one, each with words for what is other in it; the call itself first."""
    yield "as the case is", call
    for way, change in LAYOUTS.items():
        changed = call.mapped(lambda v, change=change: change(v) if isinstance(v, Tensor) else v)  # type: ignore[misc]  # of this round
        if any(not _alike(a, b) for a, b in zip(call.tensors().values(), changed.tensors().values(), strict=True)):
            yield way, changed
        yield from _one_by_one(call, way, change)
    sizes = sorted({n for tensor in call.tensors().values() for n in tensor.shape})
    for n in sizes:
        for m in dict.fromkeys((0, 1, 2, n - 1, n + 1)):
            if m >= 0 and m != n:
                yield f"with {m} in place of the size {n}", call.mapped(lambda v, n=n, m=m: _resized(v, n, m))  # type: ignore[misc]  # of this round


def _one_by_one(call: Call, way: str, change: Callable[[Tensor], Tensor]) -> Iterator[tuple[str, Call]]:
    tensors = call.tensors()
    for name, tensor in tensors.items() if len(tensors) > 1 else ():
        if not _alike(tensor, change(tensor)):
            yield f"{name} {way}", call.mapped(lambda v, t=tensor: change(v) if v is t else v)  # type: ignore[misc]  # of this round


def _transposed(t: Tensor) -> Tensor:
    return t.mT.contiguous().mT if t.ndim > 1 else t


def _channels_last(t: Tensor) -> Tensor:
    return t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t


def _spaced(t: Tensor) -> Tensor:
    return torch.stack([t, t], -1)[..., 0] if t.ndim else t


def _offset(t: Tensor) -> Tensor:
    return torch.stack([t, t])[1]


def _expanded(t: Tensor) -> Tensor:
    return t[:1].expand(t.shape) if t.ndim and t.shape[0] > 1 else t


#: Another layout of the same values, but for the last, whose rows are all the first.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed in memory": _transposed,
    "channels-last": _channels_last,
    "with gaps in memory": _spaced,
    "from the middle of its memory": _offset,
    "expanded from one row": _expanded,
}


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.stride() == b.stride() and a.storage_offset() == b.storage_offset()


def _resized(value: object, n: int, m: int) -> object:
    """Return a tensor with m in place of each size n: the first elements, repeated where there are too few."""
    if not isinstance(value, Tensor):
        return value
    for dim, size in enumerate(value.shape):
        if size == n > 0:
            value = value.index_select(dim, torch.arange(m, device=value.device) % n)
    return value.new_zeros([m if size == n else size for size in value.shape]) if n == 0 else value
