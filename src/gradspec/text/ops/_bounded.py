"""Comments that go into one prompt, as many as a limit allows for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gradspec.text._data import Data
from gradspec.text._graph._variable import Variable


def feedback_of(gradient: Variable, limit: int | None) -> Data:
    """Return what a gradient says, with at most so many characters for each text."""
    said = gradient.data
    if limit is None or not isinstance(said, str | list):
        return said
    if isinstance(said, str):
        return bounded([str(part.data) for part in gradient.parts], limit)
    parts: list[Any] = [part.data for part in gradient.parts]
    return [bounded([str(text) for text in place], limit) for place in zip(*parts, strict=True)]


def bounded(comments: Sequence[str], limit: int) -> str:
    """Return comments, a line each, with at most so many characters, and a line that says what was left out.

    Comments that fit together are returned as they are. Otherwise equal ones are written once, with their number, and
    those that still do not fit are left out, the first ones last.

    Example:
        >>> print(bounded(["Shorter.", "Be kind.", "Shorter.", "Shorter.", "Name the source."], 35))
        Shorter. (3 times)
        Be kind.
        [1 of 5 comments is left out: 16 characters]
    """
    said = [comment for comment in comments if comment]
    whole = "\n".join(said)
    if len(whole) <= limit:
        return whole
    kept: list[str] = []
    left, characters, room = 0, 0, limit
    for comment, times in Counter(said).items():
        line = comment if times == 1 else f"{comment} ({times} times)"
        if len(line) <= room:
            kept.append(line)
            room -= len(line) + 1
        else:
            left, characters = left + times, characters + len(comment) * times
    if not kept:
        first = said[0]
        kept, left, characters = [first], left - 1, characters - len(first)
        if len(first) > limit:
            kept = [f"{first[:limit]} ...", f"[{len(first) - limit} of the {len(first)} characters above are left out]"]
    if left:
        are = "comment is" if len(said) == 1 else "comments is" if left == 1 else "comments are"
        kept.append(f"[{left} of {len(said)} {are} left out: {characters} characters]")
    return "\n".join(kept)
