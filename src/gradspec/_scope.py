"""The uses of a function that a run may ask about: each law belongs to one, and a run fails by those it asks about."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum


class Scope(StrEnum):
    """A use of a function."""

    #: Values, first derivatives in eager mode, dtypes, layouts, state, effects, autocast.
    TRAINING = "training"
    #: Derivatives of the backward pass.
    HIGHER = "higher"
    #: Forward-mode differentiation.
    FORWARD = "forward"
    #: `torch.func`: `grad`, `vmap`, `functional_call`.
    FUNC = "func"
    #: `torch.compile`, and the fake tensors that it traces with.
    COMPILE = "compile"
    #: `torch.export`.
    EXPORT = "export"
    #: DTensors, `DistributedDataParallel`, `fully_shard`.
    DISTRIBUTED = "distributed"
    #: Memory and time: what is kept too long, or waits for the device.
    MEMORY = "memory"

    @property
    def words(self) -> str:
        """The scope as a reader says it, for example "higher derivatives"."""
        return _WORDS[self]


_WORDS = {
    Scope.TRAINING: "training",
    Scope.HIGHER: "higher derivatives",
    Scope.FORWARD: "forward mode",
    Scope.FUNC: "`torch.func`",
    Scope.COMPILE: "`torch.compile`",
    Scope.EXPORT: "`torch.export`",
    Scope.DISTRIBUTED: "distributed training",
    Scope.MEMORY: "memory and time",
}
#: All of them, in one word.
ALL = "all"


class ScopeError(ValueError):
    """A scope that does not exist; the message is one line for the user."""


def scopes_of(names: str | Iterable[str]) -> tuple[Scope, ...]:
    """Return the scopes of a text such as "training,compile", or of a list of names; "all" is all of them.

    Raises:
        ScopeError: there is no such scope, or none is named.

    Example:
        >>> scopes_of("training,compile")
        (<Scope.TRAINING: 'training'>, <Scope.COMPILE: 'compile'>)
    """
    words = names.split(",") if isinstance(names, str) else names
    found: list[Scope] = []
    for word in (str(word).strip() for word in words):
        if word == ALL:
            found += Scope
        elif word in list(Scope):
            found.append(Scope(word))
        else:
            close = get_close_matches(word, [*Scope, ALL], n=1)
            meant = f"did you mean {str(close[0])!r}?" if close else f"choose from {', '.join([*Scope, ALL])}"
            raise ScopeError(f"no scope {word!r}: {meant}")
    return tuple(dict.fromkeys(found))
