"""`help()` and every editor show the fields of a spec: its docstring lists them, in the words that the fields have."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, fields
from textwrap import TextWrapper
from typing import Any

import pytest

from gradspec import Case, FunctionSpec, Supports
from gradspec.spec import Accuracy, Effects, ModuleCase, ModuleSpec, ModuleSupports

#: What a type is called in a list that people read.
TYPES = {
    r"Callable\[.*\] \| Any": "list or Callable",
    r"Callable\[.*\]": "Callable",
    r"Mapping\[.*\]": "Mapping",
    r"tuple\[(\w+), \.\.\.\]": r"tuple of \1",
}


def comments_of(cls: type) -> dict[str, str]:
    """Return the first sentence of the comment of each field, those of its bases included."""
    found: dict[str, str] = {}
    for base in reversed([one for one in cls.__mro__ if one is not object]):
        lines = re.findall(r"((?:^    #: .*\n)+)    (\w+):", inspect.getsource(base), re.MULTILINE)
        for comment, name in lines:
            text = " ".join(re.sub(r"^    #: ", "", comment, flags=re.MULTILINE).split())
            found[name] = re.split(r"(?<=[.])(?: (?=[A-Z])|$)", text)[0]
    return found


def kind_of(field: Field[Any]) -> str:
    said = str(field.type)
    for pattern, words in TYPES.items():
        said = re.sub(pattern, words, said)
    return said.removesuffix(" | None")


def default_of(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "" if field.default_factory is MISSING else ", optional"
    if isinstance(field.default, Supports | Effects) or field.default is None or field.default in ("", ()):
        return ", optional"
    return f", default {field.default!r}" if isinstance(field.default, int | str) else ", optional"


def listed(cls: type) -> str:
    """Return the list of the fields of a class, as its docstring has it."""
    comments = comments_of(cls)
    order = sorted(fields(cls), key=lambda field: field.kw_only)
    wrapped = TextWrapper(width=120, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False)
    lines = [wrapped.fill(f"{f.name} ({kind_of(f)}{default_of(f)}): {comments[f.name]}") for f in order if f.init]
    return "\n".join(["    Args:", *lines, ""])


@pytest.mark.parametrize(
    "cls", [FunctionSpec, Case, ModuleSpec, ModuleCase, Supports, ModuleSupports, Accuracy, Effects]
)
def test_the_docstring_lists_each_field_with_its_type_and_default(cls: type) -> None:
    expected = listed(cls)

    assert expected in inspect.getsource(cls), f"paste:\n{expected}"


@pytest.mark.parametrize(
    "cls", [FunctionSpec, Case, ModuleSpec, ModuleCase, Supports, ModuleSupports, Accuracy, Effects]
)
def test_help_shows_the_list_and_an_example(cls: type) -> None:
    doc = inspect.getdoc(cls) or ""

    assert [f.name for f in fields(cls) if f.init and f"\n    {f.name} (" not in doc] == []
    assert "Example:\n    >>> " in doc
