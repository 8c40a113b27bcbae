"""Detect operations that read values of given tensors to the host, on any device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec.laws.tensor.support._written import line_of_the_user, storage_of, tensors_in, with_memory

#: Methods that read memory without an operation.
METHODS = {getattr(Tensor, name): name for name in ("tolist", "numpy", "__array__", "cpu")}
#: Reads that torch does not tag.
UNTAGGED = ("aten.equal", "aten.is_nonzero")


@contextmanager
def watching(tensors: Iterable[Tensor], where: str, found: list[str]) -> Iterator[None]:
    """Record each read of a value that depends on these tensors, as "WHERE aten.nonzero (bank.py:31, in backward)"."""
    derived = {storage_of(t): t.untyped_storage() for t in tensors_in(tuple(tensors))}
    here: list[str] = []
    try:
        with _Methods(derived, here), _Operations(derived, here):
            yield
    finally:
        found += [f"{where} {read}" for read in here]


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Sees every operation; what an operation makes of a derived tensor is derived."""

    def __init__(self, derived: dict[int, Any], found: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.derived, self.found = derived, found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        depends = any(storage_of(t) in self.derived for t in tensors_in((*args, *kwargs.values())))
        if depends and _reads(func, args, kwargs) and not self._fills(func, args):
            self.found.append(f"{str(func).rpartition('.')[0]} ({line_of_the_user()})")
        made = with_memory(func)(*args, **kwargs)
        if depends:
            self.derived |= {storage_of(t): t.untyped_storage() for t in tensors_in(made)}
        return made

    def _fills(self, func: Any, args: Any) -> bool:
        """Whether `x[mask] = number`: torch makes it a masked fill on every device, which counts nothing.

        A tensor in place of the number stays where it is, and then the elements are counted.
        """
        if str(func).rpartition(".")[0] not in ("aten.index_put", "aten.index_put_") or any(args[3:]):
            return False
        indices, value = args[1], args[2]
        return len(list(tensors_in(indices))) == 1 and value.ndim == 0 and storage_of(value) not in self.derived


class _Methods(TorchFunctionMode):
    """Sees the methods that are not operations."""

    def __init__(self, derived: dict[int, Any], found: list[str]) -> None:
        super().__init__()
        self.derived, self.found = derived, found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in METHODS and any(storage_of(t) in self.derived for t in tensors_in(args[0])):
            self.found.append(f"{METHODS[func]} ({line_of_the_user()})")
        return func(*args, **(kwargs or {}))


def _reads(func: Any, args: Any, kwargs: Any) -> bool:
    name = str(func).rpartition(".")[0]
    if name in ("aten.index", "aten.index_put", "aten.index_put_", "aten._unsafe_index"):
        # Numbers as an index need no look at the values; a mask does, to count its elements.
        return any(t.dtype in (torch.bool, torch.uint8) for t in tensors_in(args[1]))
    if name == "aten.repeat_interleave" and kwargs.get("output_size") is not None:
        return False
    tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    return name in UNTAGGED or not tags.isdisjoint(func.tags)
