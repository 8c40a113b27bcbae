"""Hold the detached parts of a surrogate constant, so that its derivative is the declared gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

#: The names of a stopped gradient.
DETACH = ("detach", "detach_")


class _Keeping(TorchFunctionMode):
    """Keeps what is detached, or, where something is kept, hands that out in its place, in the same order."""

    def __init__(self, kept: list[Tensor] | None = None) -> None:
        super().__init__()
        self.seen: list[Tensor] = []
        self._kept = iter(kept) if kept is not None else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") not in DETACH:
            return found
        if self._kept is None:
            self.seen.append(found.clone())
            return found
        held = next(self._kept, None)
        if held is None or held.shape != found.shape:
            raise OtherDetachError
        return args[0].data.copy_(held) if func.__name__ == "detach_" else held.clone()


class OtherDetachError(Exception):
    """It detaches something else for other numbers."""


def held_still(function: Callable[..., tuple[Tensor, ...]], x: tuple[Tensor, ...]) -> Callable[..., tuple[Tensor, ...]]:
    """Return the map in which each tensor that `function` detaches has the value that it has at `x`.

    Raises:
        OtherDetachError: (the map) it detaches something of another shape, or more, than at `x`.
    """
    keeping = _Keeping()
    with keeping:
        function(*x)
    if not keeping.seen:
        return function

    def held(*args: Tensor) -> tuple[Tensor, ...]:
        with _Keeping(keeping.seen):
            return function(*args)

    return held
