"""The data of a Variable: a text, a number, or a flat list of either."""

from __future__ import annotations

from typing import TypeAlias

#: What a Variable holds: a text, a number, or a flat list of texts or of numbers.
Data: TypeAlias = "str | int | float | list[str] | list[int] | list[float]"
#: Text or numbers, and how many of them; None for a single one.
Kind: TypeAlias = "tuple[type, int | None]"


def kind(data: Data) -> Kind:
    """Return what can be merged with what: texts with texts, lists with lists of the same length."""
    if isinstance(data, list):
        return (str if data and isinstance(data[0], str) else float, len(data))
    return (str if isinstance(data, str) else float, None)


def fits(gradient: Kind, of: Kind) -> bool:
    """Return whether a gradient can be of such data.

    Words may be of numbers, and one text of anything: of a list, it is of each place.

    Example:
        >>> fits((str, None), (float, 3)), fits((str, 2), (str, 3)), fits((float, None), (str, None))
        (True, False, False)
    """
    if gradient == (str, None):
        return True
    return gradient[1] == of[1] and (gradient[0] is str or of[0] is not str or of[1] == 0)


def in_words(of: Kind) -> str:
    """Return what such data is, for a message."""
    element, length = of
    name = "text" if element is str else "number"
    return f"a {name}" if length is None else f"a list of {length} {name}{'' if length == 1 else 's'}"


def zero(data: Data) -> Data:
    """Return the gradient that says nothing about such data: the empty text, or 0."""
    element, length = kind(data)
    nothing = "" if element is str else 0
    return nothing if length is None else [nothing] * length  # type: ignore[return-value]


def checked(data: object) -> Data:
    """Return data as a Variable keeps it: a list of its own, of one type.

    Raises:
        TypeError: a Variable cannot hold it.
    """
    if isinstance(data, str | int | float):
        return data
    if isinstance(data, list | tuple):
        if all(isinstance(item, str) for item in data):
            return list(data)
        if all(isinstance(item, int | float) for item in data):
            return [float(item) for item in data] if any(isinstance(item, float) for item in data) else list(data)
        types = sorted({type(item).__name__ for item in data})
        raise TypeError(f"a Variable's list holds only strings or only numbers; this one has {', '.join(types)}")
    raise TypeError(
        f"a Variable holds a string, a number, or a flat list of either, not {type(data).__name__}; "
        "write it out as a string first"
    )


def holds_itself(what: str) -> ValueError:
    """Return the error for a container in which nobody would come to an end.

    It is what a RecursionError becomes: to look for it beforehand would cost every call.
    """
    return ValueError(f"{what} holds itself, or is nested too deeply: a list must end somewhere")
