"""The published documents: each member that they print is in `published_api.toml`, in our class, and on its page.

They lie beside the repository; where they do not, the tests that read them are skipped. `python -m pytest -s -k member
tests/test_published_documents.py` prints the table: member, whether it is there, page, and examples that run.
"""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradspec.sphinx_ext.autodoc._torch_bases import inherited_names
from published_api import CLASSES, Method, PublishedClass, parse_method, parse_signature

ROOT = Path(__file__).parents[1]
FOLDER = next((p for p in (ROOT.parent / "shared" / "spec", ROOT / "shared" / "spec") if p.is_dir()), None)
PAGES = [page for room in ("functions", "modules", "text") for page in sorted((ROOT / "docs" / room).glob("*.md"))]

reads_documents = pytest.mark.skipif(FOLDER is None, reason="the published documents are not beside the repository")

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


@reads_documents
def test_every_member_of_the_documents_is_in_the_contract() -> None:
    assert [member for member in documents() if lacking(member)] == []


@reads_documents
def test_the_contract_has_nothing_that_the_documents_lack() -> None:
    names = {
        (owner, re.split(r"\(", line)[0].split()[-1])
        for owner, what, line in documents()
        if what in ("method", "attribute")
    }
    assert {(entry.published, member) for entry in CLASSES for member in entry.members} == names
    assert {entry.published for entry in CLASSES} == {owner for owner, what, _ in documents() if what == "class"}


def page_of(entry: PublishedClass) -> Path | None:
    """Return the page that documents a class."""
    directive = re.compile(rf"^\s*\.\. auto\w+:: (?:[\w.]+\.)?{_short(entry)}\b", re.MULTILINE)
    return next((page for page in PAGES if directive.search(page.read_text(encoding="utf-8"))), None)


def _short(entry: PublishedClass) -> str:
    return entry.ours.rpartition(".")[2]


def is_on(page: Path, entry: PublishedClass, member: str) -> bool:
    """Return whether the source of a page documents a member: by name, or with all that its class has from torch."""
    text, cls = page.read_text(encoding="utf-8"), entry.load()
    named = rf"^(?:\s*\.\. (?:auto|py:)\w+:: [\w.]*{_short(entry)}\.|\s+\.\. (?:auto|py:)\w+:: ){member}\b"
    if re.search(named, text, re.MULTILINE):
        return True
    return ":inherited-members:" in text and cls is not None and member in inherited_names(cls)


def examples(entry: PublishedClass) -> list[doctest.DocTest]:
    """Return the doctests of a class and its methods that use it."""
    cls = entry.load()
    assert cls is not None
    found = doctest.DocTestFinder().find(cls, entry.ours, sys.modules[cls.__module__])
    return [test for test in found if any(_short(entry) in example.source for example in test.examples)]


def _is_there(entry: PublishedClass, member: str) -> bool:
    cls = entry.load()
    annotated = {name for base in getattr(cls, "__mro__", ()) for name in vars(base).get("__annotations__", {})}
    return hasattr(cls, member) or member in annotated


def test_every_member_is_there_and_on_the_page_of_its_class() -> None:
    absent = []
    for entry in CLASSES:
        page, number = page_of(entry), sum(len(test.examples) for test in examples(entry))
        rows = [("the class", entry.load() is not None, page is not None)]
        rows += [(name, _is_there(entry, name), bool(page and is_on(page, entry, name))) for name in entry.members]
        where = page.relative_to(ROOT).as_posix() if page else "no page"
        calls = {method.name: f"{method.name}{method.signature or ''}" for method in entry.methods}
        for name, there, shown in rows:
            marks = f"{'there' if there else 'ABSENT':7} {where if shown else 'NOT ON ITS PAGE':37}"
            print(f"{entry.ours:33} {calls.get(name, name):38} {marks} {number} examples")
            absent += [] if there and shown else [f"{entry.ours} {name}"]
        for call, keys in entry.state.items():
            print(f"{entry.ours:33} {f'state_dict {call}':38} {len(keys)} keys")
    assert absent == []


@pytest.mark.parametrize("entry", CLASSES, ids=lambda entry: entry.ours)
def test_every_class_has_an_example_that_runs(entry: PublishedClass) -> None:
    said: list[str] = []
    failed = [doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed for test in examples(entry)]
    assert failed, "no example"
    assert not any(failed), "".join(said)
