"""What a function adds up or saves in a half type, kept in float32 instead: experiments that show what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from gradspec._place import calling_line
from gradspec.laws.tensor.support._wide_memory import HALF, WideMemory, address, is_half_tensor

#: Additions, and what else keeps a sum that is carried from one term to the next.
_SUMS = ("add", "sub", "addcmul", "addcdiv", "addmm", "addmv", "addr", "baddbmm", "lerp")
_LINEAR = (*_SUMS, "mul", "div", "neg", "clone")
#: Sums of several terms into places that an index names.
_INDEXED = ("index_add", "scatter_add", "index_put")
#: From how many additions on a sum is a long one.
CHAIN = 8


@dataclass
class _Sum:
    """A sum that a piece of memory holds."""

    #: How many additions have led to it.
    additions: int = 0
    #: The line of the last of them.
    line: str = ""


class CarriedInSingle(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, the lines of the function under test add up numbers of a half type in float32.

    Each tensor still holds what a half type can hold; what an addition in a chain gets is the sum as float32 has it.

    Args:
        in_backward: only where backward itself adds up, and not where forward does or backward runs it once more.
    """

    def __init__(self, *, in_backward: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._in_backward = in_backward
        self._memory = WideMemory()
        #: By the address of a memory.
        self._sums: dict[int, _Sum] = {}
        #: The line of the last addition of the longest sum, if one is long.
        self.line, self._most = "", CHAIN - 1
        #: The half type of its terms.
        self.dtype = torch.float32

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; one that adds up in a half type runs in float32."""
        kwargs = kwargs or {}
        if self._in_backward and (torch._C._current_graph_task_id() < 0 or torch.is_grad_enabled()):
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        kind, is_written = name.rstrip("_"), name.endswith("_")
        terms = _terms(kind, args)
        if _adds(args) and (terms or kind in _LINEAR) and (line := calling_line()) and (terms or self._any(args)):
            return self._carried(func, args, kwargs, line if terms else "", terms, is_written=is_written)
        found = func(*args, **kwargs)
        if is_written and args[0] in self._memory and not (kind == "copy" and _is_same(*args[:2])):
            self._memory.shown(args[0]).copy_(args[0])
        return found

    def _carried(
        self, func: Callable[..., Any], args: Any, kwargs: Any, line: str, terms: int, *, is_written: bool
    ) -> Tensor:
        before = self._any(args)
        wide = tree_map(self._memory.wide, args)
        if is_written:
            found: Tensor = args[0]
            func(values := self._memory.shown(found), *wide[1:], **kwargs)
            found.copy_(values)
        else:
            exact = func(*wide, **kwargs)
            found = self._memory.put(torch.empty_like(exact, dtype=args[0].dtype), exact)
        total = self._sums.setdefault(address(found), _Sum())
        total.additions = max(one.additions for one in (total, *before)) + terms
        total.line = line or next((one.line for one in before), total.line)
        if total.additions > self._most:
            self._most, self.line, self.dtype = total.additions, total.line, found.dtype
        return found

    def _any(self, args: Any) -> list[_Sum]:
        """Return the sums that the arguments of an operation hold."""
        return [self._sums[address(value)] for value in args if is_half_tensor(value) and address(value) in self._sums]


class SavedInSingle(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, backward gets in float32 what forward has in float32 and saves in a half type.

    Args:
        outputs: what forward returns: it is of the dtype of the call, and may be saved as it is.
    """

    def __init__(self, outputs: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._outputs = tuple(outputs)
        #: By the address of a memory: it, what was rounded to it, and the line where.
        self._rounded: dict[int, tuple[torch.UntypedStorage, Tensor, str]] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, self._unpack)
        #: The line where something that backward read was rounded, and to which type.
        self.line, self.dtype = "", torch.float32

    def __enter__(self) -> Any:
        """Begin to note what is rounded and saved."""
        self._hooks.__enter__()
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *raised: Any) -> None:
        """End it."""
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        self._hooks.__exit__(*raised)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; note what it rounds to a half type."""
        found = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ == "_to_copy" and found.dtype in HALF and args[0].dtype == torch.float32:
            self._rounded[address(found)] = found.untyped_storage(), args[0], calling_line()
        return found

    def _unpack(self, tensor: Tensor) -> Tensor:
        _, wide, line = self._rounded.get(address(tensor), (None, tensor, ""))
        if not line or wide.shape != tensor.shape or any(torch.equal(tensor, y) for y in self._outputs):
            return tensor
        self.line, self.dtype = line, tensor.dtype
        return wide


def _terms(kind: str, args: Any) -> int:
    """Return how many numbers an operation adds to a number of its result, as a mean; 0 for one that adds none."""
    if kind not in _INDEXED or (kind == "index_put" and not (len(args) > 3 and args[3])):
        return int(kind in _SUMS)
    index = args[1][0] if kind == "index_put" else args[2]
    return 0 if index is None or not index.numel() else index.numel() // index.unique().numel()


def _adds(args: Any) -> bool:
    """Whether an operation adds to a tensor of a half type, and nothing wider is among its arguments."""
    tensors = [value for value in args if isinstance(value, Tensor) and value.is_floating_point()]
    if not tensors or tensors[0] is not args[0] or tensors[0].layout is not torch.strided:
        return False
    return is_half_tensor(tensors[0]) and all(is_half_tensor(value) or not value.ndim for value in tensors)


def _is_same(one: Tensor, other: Any) -> bool:
    """Whether two tensors are the same numbers in memory."""
    if not isinstance(other, Tensor) or one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.data_ptr() == other.data_ptr() and one.stride() == other.stride()
