"""Comments that go into one prompt, as many as a limit allows for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradspec.text._graph._variable import Variable


def comments_of(gradient: Variable) -> list[list[str]]:
    """Return what a gradient is made of: for one text a list of comments, for a list one for each of its places."""
    if isinstance(gradient.data, list):
        parts = [[str(text) for text in part.data] for part in gradient.parts]  # type: ignore[union-attr]
        return [list(place) for place in zip(*parts, strict=True)]
    if isinstance(gradient.data, str):
        return [[str(part.data) for part in gradient.parts]]
    return [[str(gradient.data)]]


def bounded(comments: Sequence[str], limit: int | None) -> str:
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
    if limit is None or len(whole) <= limit:
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
