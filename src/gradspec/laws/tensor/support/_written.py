"""Shared parts of the laws on effects: each write to memory older than the call, with its line."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradspec._place import is_under_test

#: What calls the laws, and with them the function.
CALLERS = tuple(Path(__file__).parents[3] / room for room in ("_engine", "_audit"))


@dataclass(frozen=True)
class Write:
    """One operation that wrote to memory which it did not make."""

    storage: int
    tensor: Tensor
    #: As "aten.add_".
    operation: str
    #: As "bank.py:31, in backward".
    line: str
    #: What the tensor was before, if that is kept.
    before: Tensor | None = None

    def take_back(self) -> None:
        """Make the tensor what it was before."""
        if self.before is not None:
            self.tensor.detach().copy_(self.before)


class Writes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Records each operation that writes to a storage which was not born under this mode.

    Args:
        keep: whether to keep what was there before.
    """

    def __init__(self, *, keep: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._keep = keep
        self.found: list[Write] = []
        #: Whether an operation wrote to what another one had made.
        self.to_results = False
        # The storages themselves, so that none dies and leaves its address to another one.
        self._born: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        arguments = list(tensors_given(func, args, kwargs))
        for tensor in (t for is_written, t in arguments if is_written):
            if storage_of(tensor) in self._born:
                self.to_results = True
            else:
                operation = str(func).rpartition(".")[0]
                before = tensor.detach().clone() if self._keep else None
                self.found.append(Write(storage_of(tensor), tensor, operation, line_of_the_user(), before))
        made = with_memory(func)(*args, **kwargs)
        # What torch.tensor lifts was made by it a moment ago, out of sight.
        lifted = func.overloadpacket in (torch.ops.aten.lift_fresh, torch.ops.aten.lift)
        old = set() if lifted else {storage_of(t) for _, t in arguments}
        for tensor in tensors_in(made):
            if (key := storage_of(tensor)) not in old:
                self._born[key] = tensor.untyped_storage()
        return made

    def handed_out(self, tensors: Iterable[Any]) -> None:
        """Count the memory of these tensors as the caller's from now on."""
        for tensor in tensors_in(tuple(tensors)):
            self._born.pop(storage_of(tensor), None)


def with_memory(func: Any) -> Any:
    """Return an operation, and in place of one that makes zeros without memory, as second derivatives do, `zeros`.

    Under a mode of dispatch such a tensor ends the process.
    """
    return torch.zeros if func is torch.ops.aten._efficientzerotensor.default else func


def storage_of(tensor: Tensor) -> int:
    """Return what identifies the memory of a tensor while that lives."""
    return int(tensor.untyped_storage()._cdata)


def line_of_the_user() -> str:
    """Return the innermost line of the code under test."""
    for frame in reversed(traceback.extract_stack()):
        path = Path(frame.filename)
        if any(path.is_relative_to(room) for room in CALLERS):
            break
        if is_under_test(frame.filename):
            return f"{path.name}:{frame.lineno}, in {frame.name}"
    return "a line of torch"


def tensors_given(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[bool, Tensor]]:
    """Yield the tensor arguments of an operation, and whether it writes to each."""
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        is_written = argument.alias_info is not None and argument.alias_info.is_write
        if argument.name in ("running_mean", "running_var"):
            is_written = _moves_statistics(func, is_written, args, kwargs)
        for tensor in tensors_in(value):
            yield is_written, tensor


def _moves_statistics(func: Any, is_said: bool, args: Any, kwargs: Any) -> bool:
    """Whether an operation moves the running statistics that it is given: of most, the schema does not say so.

    In evaluation they are read, whatever the schema says, and a backward pass only reads them.
    """
    name = str(func).split(".")[1]
    if "batch_norm" not in name or name.endswith(("_backward", "_functional", "_no_training", "_no_update")):
        return is_said
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "training":
            return bool(args[place] if place < len(args) else kwargs.get(argument.name, True))
    return True


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested tuples and lists; of a sparse one, those that hold its indices and values."""
    if isinstance(value, Tensor):
        yield from (value,) if value.layout == torch.strided else _parts(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)


def _parts(sparse: Tensor) -> Iterator[Tensor]:
    """Yield the parts of a tensor that has no memory of its own."""
    if sparse.layout == torch.sparse_coo:
        yield from (sparse._indices(), sparse._values())
    elif sparse.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from (sparse.crow_indices(), sparse.col_indices(), sparse.values())
    elif sparse.layout in (torch.sparse_csc, torch.sparse_bsc):
        yield from (sparse.ccol_indices(), sparse.row_indices(), sparse.values())
