"""Laws that a caller names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from gradspec.law import Law
from gradspec.laws import LAWS


def laws_of(given: Sequence[Law | str] | None) -> tuple[Law, ...]:
    """Return the laws, ours by name or as objects; all of ours if none is given.

    Raises:
        TypeError: it is one text, or holds something else.
        ValueError: no law of ours has a name.
    """
    if isinstance(given, str):
        raise TypeError(f"laws is the text {given!r}: write a list, as laws=[{given!r}]")
    known = {law.name: law for law in LAWS}
    return tuple(_law(one, known) for one in given or LAWS)


def _law(given: Law | str, known: dict[str, Law]) -> Law:
    if isinstance(given, Law):
        return given
    if not isinstance(given, str):
        raise TypeError(f"laws holds {given!r}: give a Law, or the name of one of gradspec")
    if given not in known:
        near = get_close_matches(given, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "`gradspec list` shows them"
        raise ValueError(f"gradspec has no law {given!r}: {hint}")
    return known[given]
