"""What tells two classes apart that one place makes, as a factory does for each of its arguments."""

from __future__ import annotations

from typing import Any

from gradspec._watch._wrapping import original_of

#: What is shown of a value; the rest of a long one decides nothing.
SHOWN = 24


def variant_of(cls: Any) -> str:
    """Return the values with which a class was made, as ", name=value": what methods close over, and its attributes."""
    held: dict[str, str] = {}
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        function = original_of(function) or function
        if (code := getattr(function, "__code__", None)) is None:
            held[name] = "" if name.startswith("_") else _shown(value)
            continue
        for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                held[free] = _shown(cell.cell_contents)
            except ValueError:  # it is empty yet
                continue
    return "".join(f", {name}={value}" for name, value in sorted(held.items()) if value)


def _shown(value: Any) -> str:
    """Return a plain value in a few characters; nothing of any other, which is another object in each class."""
    if value is not None and not isinstance(value, bool | int | float | complex | str):
        return ""
    return repr(value).replace(":", " ")[:SHOWN]
