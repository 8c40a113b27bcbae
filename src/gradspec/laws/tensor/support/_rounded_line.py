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
from gradspec.laws.tensor.support._wide_memory import WideMemory, is_half_tensor, names_half

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
        self._memory = WideMemory()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; one that reads or makes a half type runs in float32 too, and gives its result."""
        kwargs, schema = kwargs or {}, func._schema
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
        if is_view or not any(is_half_tensor(value) or names_half(value) for value in tree_leaves((args, kwargs))):
            return func(*args, **kwargs)
        if line := calling_line():
            self.lines[line] = None
        as_it_is = (line and line == self.but) or torch.Tag.nondeterministic_seeded in func.tags
        if schema.is_mutable:
            return self._written(func, args, kwargs, as_it_is=as_it_is)
        found = func(*args, **kwargs)
        if as_it_is:
            return found
        wide = self._memory.wide
        return tree_map(self._with, found, func(*tree_map(wide, args), **tree_map(wide, kwargs)))

    def _written(self, func: Any, args: Any, kwargs: Any, *, as_it_is: bool) -> Any:
        target, wide = args[0], self._memory.wide
        if not as_it_is:
            args, kwargs = (target, *tree_map(wide, args[1:])), tree_map(wide, kwargs)
        if not is_half_tensor(target):
            return func(*args, **kwargs)
        if as_it_is:
            found = func(*args, **kwargs)
            self._memory.shown(target).copy_(target)
            return found
        values = self._memory.shown(target)
        func(values, *args[1:], **kwargs)
        target.copy_(values)
        return target

    def _with(self, found: Any, exact: Any) -> Any:
        """Return a result that holds what its dtype holds of the exact one, and keep that."""
        if not isinstance(found, Tensor) or not found.is_floating_point():
            return found
        return self._memory.put(found, exact) if is_half_tensor(found) else exact.to(found.dtype)


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
