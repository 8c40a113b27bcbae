"""What the fields of a spec and of its parts are, which a type checker knows and a call does not."""

from __future__ import annotations

from typing import Any

from gradspec.spec._forms import FORMS

#: How a value of a class of Python is written.
_WRITTEN = {str: "a text", int: "a whole number", type: "a class"}


def check_fields(owner: Any, where: str, **kinds: Any) -> None:
    """Refuse a value that is not what its field is for.

    Args:
        owner: has the fields.
        where: names it, `spec 'cube'`.
        kinds: the class of each field, or a tuple of the class of the elements of a tuple. None is left alone where it
            is the default.

    Raises:
        ValueError: a field is something else; with how one is written.
    """
    defaults = {name: one.default for name, one in type(owner).__dataclass_fields__.items()}
    for name, kind in kinds.items():
        value = getattr(owner, name)
        if value is None and defaults[name] is None:
            continue
        of = kind[0] if isinstance(kind, tuple) else kind
        written = _WRITTEN.get(of) or FORMS.get(of, f"{of.__name__}(...)")
        if isinstance(kind, tuple):
            strange = [one for one in value if not _is(one, of)] if isinstance(value, tuple | list) else [value]
            if strange:
                raise ValueError(f"{where}: {name} has {strange[0]!r}: write a tuple, as ({written},)")
        elif not _is(value, of):
            raise ValueError(f"{where}: {name} is {value!r}: write {written}")


def check_promises(supports: Any) -> None:
    """Refuse a promise that is neither True nor False nor None: "no" would be one.

    Raises:
        ValueError: there is one.
    """
    for name in type(supports).__dataclass_fields__:
        value = getattr(supports, name)
        if value is not None and not isinstance(value, bool):
            made = type(supports).__name__
            raise ValueError(f"{made}: {name} is {value!r}: True, it works; False, it is refused; None, neither")


def _is(value: Any, of: type) -> bool:
    return isinstance(value, of) and not (of is int and isinstance(value, bool))
