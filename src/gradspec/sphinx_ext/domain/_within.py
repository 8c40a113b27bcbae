"""Names of members, and the documented objects that they lie in."""

from __future__ import annotations

from collections.abc import Iterable


def lies_within(name: str, objects: Iterable[str]) -> bool:
    """Return whether a full name is that of one of some objects, or of a member of one.

    Example:
        >>> lies_within("package.Function.backward", ["package.Function"])
        True
        >>> lies_within("package.Functional", ["package.Function"])
        False
    """
    return any(f"{name}.".startswith(f"{known}.") for known in objects)
