"""The published documents themselves: each member that they print is in `published_api.toml`, and nothing else is.

They lie beside the repository; where they do not, these tests are skipped. `python -m pytest -s` prints the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from published_api import CLASSES, Method, parse_method, parse_signature

ROOT = Path(__file__).parents[1]
FOLDER = next((p for p in (ROOT.parent / "shared" / "spec", ROOT / "shared" / "spec") if p.is_dir()), None)
PAGES = [page for room in ("functions", "modules", "text") for page in sorted((ROOT / "docs" / room).glob("*.md"))]

pytestmark = pytest.mark.skipif(FOLDER is None, reason="the published documents are not beside the repository")

_CLASS = re.compile(r"^(?:- )?class ([\w.]+)(\(.*?\))(?:\[source\])?#?$")
_METHOD = re.compile(r"^(?:- )?((?:static |classmethod )?\w+\([^()]+\))(?:\[source\])?#?$")
_BASE = re.compile(r"^Bases: (\w+)$")
_ATTRIBUTE = re.compile(r"^(\w+): \w+#?$")
_BARE = re.compile(r"^\w+$")


def printed(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (class, what, line) of a document: the class itself, its base, its methods and its attributes."""
    owner, section = "", ""
    for line in map(str.strip, text.replace("\xa0", " ").splitlines()):
        if found := _CLASS.match(line):
            owner, section = found[1], ""
            yield owner, "class", found[2]
        elif line in ("Methods", "Attributes"):
            section = line
        elif found := _METHOD.match(line.removesuffix("[source]")):
            section = section if section == "Methods" and "static" not in line else ""
            yield owner, "method", found[1]
        elif found := _BASE.match(line):
            yield owner, "base", found[1]
        elif found := _ATTRIBUTE.match(line):
            yield owner, "attribute", found[1]
        elif section and _BARE.match(line):
            yield owner, "method" if section == "Methods" else "attribute", line


def documents() -> list[tuple[str, str, str]]:
    assert FOLDER is not None
    found = [member for page in sorted(FOLDER.glob("*.txt")) for member in printed(page.read_text(encoding="utf-8"))]
    return list(dict.fromkeys(found))


def _same(ours: Method, published: Method) -> bool:
    kinds = published.kind in ("", ours.kind)  # a list of methods does not say which are static
    return ours.name == published.name and ours.signature == published.signature and kinds


def lacking(member: tuple[str, str, str]) -> bool:
    """Return whether our contract lacks a member that a document prints."""
    owner, what, line = member
    entry = next((entry for entry in CLASSES if entry.published == owner), None)
    if entry is None:
        return True
    if what == "class":
        return entry.signature != parse_signature(line)
    if what == "base":
        return line not in entry.bases
    if what == "attribute":
        return line not in entry.attributes
    return not any(_same(method, parse_method(line)) for method in entry.methods)


def test_every_member_of_the_documents_is_in_the_contract() -> None:
    assert [member for member in documents() if lacking(member)] == []


def test_the_contract_has_nothing_that_the_documents_lack() -> None:
    names = {
        (owner, re.split(r"\(", line)[0].split()[-1])
        for owner, what, line in documents()
        if what in ("method", "attribute")
    }
    assert {(entry.published, member) for entry in CLASSES for member in entry.members} == names
    assert {entry.published for entry in CLASSES} == {owner for owner, what, _ in documents() if what == "class"}


def test_every_member_is_there_and_its_class_is_on_a_page_of_the_site() -> None:
    absent = []
    for owner, what, line in documents():
        entry = next(entry for entry in CLASSES if entry.published == owner)
        cls, short = entry.load(), entry.ours.rpartition(".")[2]
        member = "" if what == "class" else line.partition("(")[0].split()[-1]
        annotated = {name for base in getattr(cls, "__mro__", ()) for name in vars(base).get("__annotations__", {})}
        bases = {base.__name__ for base in getattr(cls, "__mro__", ())}
        is_there = cls is not None and (not member or hasattr(cls, member) or member in annotated | bases)
        documented = re.compile(rf"^\s*\.\. auto\w+:: (?:[\w.]+\.)?{short}\b", re.MULTILINE)
        page = next((page for page in PAGES if documented.search(page.read_text(encoding="utf-8"))), None)
        where = page.relative_to(ROOT).as_posix() if page else "no page"
        print(f"{entry.ours:36} {what:10} {line:44} {'there' if is_there else 'ABSENT':7} {where}")
        absent += [(owner, line)] if page is None or not is_there else []
    assert absent == []
