"""From words on a command line to laws: ours, and those that installed packages announce."""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from gradspec._one_line import one_line
from gradspec._registry._declared import declared_laws
from gradspec.law import Law

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class LawError(ValueError):
    """A law that does not exist or cannot be loaded; the message is one line for the user."""


def laws() -> tuple[Law, ...]:
    """Return our laws, then those that installed packages announce as entry points `gradspec.laws`.

    Raises:
        LawError: an entry point that cannot be loaded or holds no law, or two laws of one name.
    """
    from gradspec.laws import LAWS

    return _with_announced(LAWS)


def listed_laws() -> tuple[Law, ...]:
    """Return what `laws` returns, to be shown: ours are not imported for that, and cannot be checked.

    Raises:
        LawError: see `laws`.
    """
    return _with_announced(declared_laws())


def _with_announced(ours: Sequence[Law]) -> tuple[Law, ...]:
    found = list(ours)
    for entry in entry_points(group="gradspec.laws"):
        try:
            value = entry.load()
        except Exception as error:
            raise LawError(f"entry point {entry.value!r} of gradspec.laws raised {one_line(error)}: fix it") from None
        given = [value] if isinstance(value, Law) else value
        if not isinstance(given, list | tuple) or not all(isinstance(law, Law) for law in given):
            raise LawError(f"entry point {entry.value!r} of gradspec.laws is {in_words(value)}: give a Law or a tuple")
        found.extend(given)
    names = [law.name for law in found]
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise LawError(f"two laws are called {twins[0]!r}: rename the one that is not gradspec's")
    return tuple(found)


def select_laws(names: Sequence[str], of: Sequence[Law] | None = None) -> tuple[Law, ...]:
    """Return the laws of the given names in the order in which they run, all of them for no names.

    Args:
        names: of the laws.
        of: the laws to choose from; those of `laws` unless told.

    Raises:
        LawError: a name that no law has.
    """
    known = {law.name: law for law in of or laws()}
    for name in names:
        if name not in known:
            raise LawError(f"no law {name!r}: {did_you_mean(name, known) or '`gradspec list` shows the laws'}")
    return tuple(law for law in known.values() if not names or law.name in names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean 'a' or 'b'?" for the names close to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.65)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def in_words(value: Any) -> str:
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    return "an empty tuple" if isinstance(value, tuple) and not value else f"{article} {type(value).__name__}"
