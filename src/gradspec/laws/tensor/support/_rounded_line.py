"""Which line of a function loses what its results lack in a half type: it alone rounds, and all else is in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._place import calling_line
from gradspec.law import Reason
from gradspec.laws.tensor.support._differences import double

HALF = (torch.float16, torch.bfloat16)
#: How many lines are tried, and which part of what is lost one of them has to lose by itself.
_MOST, _PART = 64, 0.5


@dataclass(frozen=True)
class RoundedLine:
    """A line that loses digits."""

    line: str
    #: How far a result is off if this line alone rounds, and if none does, as parts of it.
    alone: float
    left: float

    def reason(self, kind: str, what: str) -> Reason:
        """Return it as the reason of a finding, with the name of the half type and of the result."""
        words = (
            f"{self.line} computes in {kind}: this alone takes {what} off by {self.alone:.1%}, "
            f"and all in float32 leaves {self.left:.1g}"
        )
        return Reason(kind="rounded at", words=words, evidence={"line": self.line, "what": what, "off": self.alone})


class _InSingle(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """While it is entered, what is in a half type has the numbers of float32, but for what one line computes.

    Each tensor keeps its dtype, and holds what that holds; an operation that reads it gets what float32 would.
    """

    def __init__(self, but: str = "") -> None:
        """Take the line that computes as it is written."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.but = but
        #: The lines that compute something of a half type, in the order of their calls.
        self.lines: dict[str, None] = {}
        #: By the address of a memory: it, so that no other one gets its address, and its numbers in float32.
        self._kept: dict[int, tuple[torch.UntypedStorage, Tensor]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; one that reads or makes a half type runs in float32 too, and gives its result."""
        kwargs, schema = kwargs or {}, func._schema
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
        if is_view or not any(_is_half(value) for value in tree_leaves((args, kwargs))):
            return func(*args, **kwargs)
        if line := calling_line():
            self.lines[line] = None
        as_it_is = (line and line == self.but) or torch.Tag.nondeterministic_seeded in func.tags
        if schema.is_mutable:
            return self._written(func, args, kwargs, as_it_is=as_it_is)
        found = func(*args, **kwargs)
        if as_it_is:
            return found
        exact = func(*tree_map(self._wide, args), **tree_map(self._wide, kwargs))
        return tree_map(self._with, found, exact)

    def _written(self, func: Any, args: Any, kwargs: Any, *, as_it_is: bool) -> Any:
        target = args[0]
        if as_it_is or not _is_half(target):
            if not as_it_is:
                args, kwargs = (target, *tree_map(self._wide, args[1:])), tree_map(self._wide, kwargs)
            found = func(*args, **kwargs)
            if _is_half(target):
                self._shown(target).copy_(target)
            return found
        values = self._shown(target)
        func(values, *tree_map(self._wide, args[1:]), **tree_map(self._wide, kwargs))
        target.copy_(values)
        return target

    def _with(self, found: Any, exact: Any) -> Any:
        """Return a result that holds what its dtype holds of the exact one, and keep that."""
        if not isinstance(found, Tensor) or not found.is_floating_point():
            return found
        if _is_half(found):
            self._shown(found.copy_(exact)).copy_(exact)
            return found
        return exact.to(found.dtype)

    def _wide(self, value: Any) -> Any:
        if not _is_half(value):
            return value
        if not isinstance(value, Tensor):
            return torch.float32
        return self._shown(value).clone() if value.untyped_storage()._cdata in self._kept else value.float()

    def _shown(self, value: Tensor) -> Tensor:
        """Return the numbers in float32 of what a tensor shows of its memory."""
        memory = value.untyped_storage()
        if memory._cdata not in self._kept:
            whole = torch.empty(0, dtype=value.dtype, device=value.device).set_(memory)
            self._kept[memory._cdata] = memory, whole.float()
        return self._kept[memory._cdata][1].as_strided(value.shape, value.stride(), value.storage_offset())


def _is_half(value: Any) -> bool:
    return value in HALF if isinstance(value, torch.dtype) else isinstance(value, Tensor) and value.dtype in HALF


def rounded_line(compute: Callable[[], Any], exact: Tensor, lost: float, times: float) -> RoundedLine | None:
    """Return the first line that takes a result as far off as it is; None where float32 does not bring it closer.

    Args:
        compute: returns the result in a half type.
        exact: the result in float64.
        lost: how far the result in the half type is off.
        times: how many times closer float32 has to bring it.
    """

    def off(line: str) -> tuple[float, _InSingle]:
        with (mode := _InSingle(line)):
            found = compute()
        return share(found, exact), mode

    left, mode = off("")
    if not left * times < lost < torch.inf:
        return None
    for line in list(mode.lines)[:_MOST]:
        if (alone := off(line)[0]) >= _PART * lost:
            return RoundedLine(line, alone, left)
    return None


def share(got: Tensor, exact: Tensor) -> float:
    """Return how far a result is off in the Euclidean norm, as a part of it."""
    return float((double(got) - exact).norm() / exact.norm())
