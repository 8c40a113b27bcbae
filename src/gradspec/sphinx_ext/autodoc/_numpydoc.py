"""The tables of members that numpydoc writes of a class, without those that only torch defines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradspec.sphinx_ext.autodoc._torch_bases import is_torch, owner_of, torch_base

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: The three forms of an entry: in a list of attributes, in an `autosummary`, in a table of what has no docstring.
_ENTRY = (
    re.compile(r" {4}(?:\*\*(\w+)\*\*|:obj:`~?(?:[\w.]+\.)?(\w+)[^`]*`)(?: : .*)?"),
    re.compile(r" {3}(?:~[\w.]+\.)?(\w+)"),
    re.compile(r" *\*\*(\w+)\*\* {2}.*"),
)
#: A line that lists a member in a section of a docstring.
_NAMED = re.compile(r"^\s*(\w+)(?:\(.*\))?(?: : .*)?$", re.MULTILINE)
#: What is left of each without entries: only its head.
_EMPTY = (
    re.compile(r"^:Attributes:\n\n*(?=\S|\Z)", re.MULTILINE),
    re.compile(r"^\.\. autosummary::\n(?: {3}:toctree:.*\n)?\n*(?=\S|\Z)", re.MULTILINE),
    re.compile(r"^(={3,}  =+)\n\1\n", re.MULTILINE),
    re.compile(r"^\.\. rubric:: (?:Attributes|Methods)\n\s*(?=\.\. (?!autosummary)|\Z|:|[^\W=])", re.MULTILINE),
)


def setup(app: Sphinx) -> None:
    """Look at each docstring once numpydoc (500) has written its tables."""
    app.connect("autodoc-process-docstring", _drop_members, priority=510)


def _drop_members(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if "numpydoc" in app.extensions and torch_base(obj) is not None:
        named = _NAMED.findall(vars(obj).get("__doc__") or "")  # what its author lists stays
        lines[:] = without_members(lines, frozenset(_of_torch(obj)).difference(named))


def _of_torch(cls: type) -> Iterator[str]:
    for name in dir(cls):
        owner = owner_of(cls, name)
        if owner is not None and is_torch(owner):
            yield name


def without_members(lines: Sequence[str], names: frozenset[str]) -> list[str]:
    """Return a docstring of numpydoc without some members, and without the heads of what is empty then."""
    kept: list[str] = []
    where, dropping = "", False
    for line in lines:
        if line[:1].strip():
            where = line
        dropping = dropping and line.startswith(" " * 8)
        entry = next((found for form in _ENTRY if (found := form.fullmatch(line))), None) if _lists(where) else None
        if entry is not None:
            dropping = next(filter(None, entry.groups())) in names
        if not dropping:
            kept.append(line)
    text = "\n".join([*kept, ""])
    for empty in _EMPTY:
        text = empty.sub("", text)
    return text.split("\n")


def _lists(head: str) -> bool:
    """Whether what is indented below a line is a list of members."""
    return head in (":Attributes:", ".. autosummary::") or head.startswith(("===", "**"))
