"""Watch a text backward pass: each backward that runs, its arguments and its results."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gradspec.text import FunctionNode, Variable
from gradspec.text._graph._arguments import Nested


@dataclass
class Ran:
    """One run of one backward."""

    node: FunctionNode
    given: tuple[Variable | None, ...]
    #: What the gradients that it was given said before it ran.
    before: tuple[Any, ...] = ()
    #: What it returned, calls for later and all.
    returned: Any = None

    @property
    def slots(self) -> tuple[int | Nested | None, ...]:
        """One for each argument: None for data, 1 for a Variable, else where Variables are in a container."""
        return self.node._slots

    @property
    def values(self) -> tuple[Any, ...]:
        """Its results, one value for each argument."""
        return self.returned if isinstance(self.returned, tuple) else (self.returned,)

    @property
    def changed(self) -> tuple[Any, Any] | None:
        """What a gradient that it was given said before it ran and says now, if that has changed."""
        pairs = zip(self.before, _said(self.given), strict=True)
        return next(((before, now) for before, now in pairs if before != now), None)

    @property
    def name(self) -> str:
        """The name of the Function."""
        return self.node.name().removesuffix("Backward")


class _Watched:
    """Stands in for the Function of one node, so that no class is changed."""

    def __init__(self, node: FunctionNode, log: list[Ran], wait: float) -> None:
        self._function, self._log, self._wait = node._function, log, wait
        self.io_bound, self._is_async = self._function.io_bound, self._function._is_async

    def backward(self, node: FunctionNode, *given: Variable | None) -> Any:
        time.sleep(self._wait)
        ran = Ran(node=node, given=given, before=_said(given))
        self._log.append(ran)
        ran.returned = self._function.backward(node, *given)
        return self._awaited(ran) if inspect.isawaitable(ran.returned) else ran.returned

    async def _awaited(self, ran: Ran) -> Any:
        ran.returned = await ran.returned
        return ran.returned


def _said(gradients: Iterable[Variable | None]) -> tuple[Any, ...]:
    """Return what gradients say; lists are copied."""
    found = [None if gradient is None else gradient.data for gradient in gradients]
    return tuple(list(data) if isinstance(data, list) else data for data in found)


def watch(nodes: Iterable[FunctionNode], log: list[Ran], *, wait: float = 0.0) -> None:
    """Have each backward of these nodes entered in a log; `wait` is a delay before each, in seconds."""
    for node in nodes:
        # The class of a node names its Function; what is in the node itself is found before that.
        vars(node)["_function"] = _Watched(node, log, wait)


def leaves_of(slot: int | Nested | None, value: Any) -> Iterator[Any]:
    """Yield what a backward returned for each Variable in an argument, None where it returned nothing."""
    if isinstance(slot, Nested):
        for key, inner in slot.items.items():
            nothing = value is None or (slot.is_dict and not isinstance(value, dict))
            yield from leaves_of(inner, None if nothing else value.get(key) if slot.is_dict else value[key])
    elif slot is not None:
        yield value
