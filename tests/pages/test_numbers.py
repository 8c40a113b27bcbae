"""A number in the prose of a page comes through a role, or is listed in numbers.toml with what holds it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.numbers import ROOT, blank, numbers, unheld

LISTED = tomllib.loads((Path(__file__).parent / "numbers.toml").read_text(encoding="utf-8"))
#: What is not prose, or shows a number that something else holds: code, roles, mathematics, links, tags, list numbers.
NOT_PROSE = (
    r"^(`{3,}|~{3,}).*?^\1`*\s*$",
    r"\{[\w:-]+\}`[^`]*`",
    r"(`+)[^`]+?\1",
    r"\$[^$]+\$",
    r"\]\([^)]*\)",
    r"https?://\S+",
    r"<[^>]*>",
    r"^\d+\. ",
    r"^#+ \d+\. ",
)

#: The fences of directives, in three parts: opening and options, content, end. That of a graph is code.
DIRECTIVE = re.compile(
    r"^((?P<fence>`{3,}|~{3,})\{gradspec-(?!graph\})[\w-]+\}[^\n]*\n(?::[^\n]*\n)*)(.*?)(^(?P=fence)[ \t]*$)",
    re.MULTILINE | re.DOTALL,
)


def captioned(text: str) -> str:
    """Return a page with nothing left of the fences of directives but their content: it is prose, as a caption is."""
    return DIRECTIVE.sub(lambda found: blank(found[1]) + found[3] + blank(found[4]), text)


def found_in(page: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each number in the prose of a page."""
    return numbers(captioned(page), NOT_PROSE)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of what people read."""
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        # A build writes the pages of laws, from docstrings.
        if path.parent.name != "laws" or path.stem in ("index", "kill-matrix"):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_a_number_in_prose_comes_through_a_role_or_is_listed() -> None:
    unlisted = [
        f"{name}:{line}: {number} is typed by hand: take it from a record with gradspec:number, or list what holds it"
        for name, text in pages()
        for line, number in found_in(text)
        if number not in LISTED.get(name, {})
    ]
    assert unlisted == []


def test_what_is_listed_is_still_on_its_page() -> None:
    found = {name: {number for _, number in found_in(text)} for name, text in pages()}
    assert [(name, number) for name, held in LISTED.items() for number in held if number not in found[name]] == []


@pytest.mark.parametrize("name", LISTED)
def test_what_holds_a_number_has_it(name: str) -> None:
    faults = {number: unheld(number, held) for number, held in LISTED[name].items()}
    assert [f"{name}: {number}: {fault}" for number, fault in faults.items() if fault] == []


def test_prose_is_told_from_the_rest() -> None:
    text = (
        "It takes 12.5 ms, in `f(33)` {role}`a 44` [here](a/55.md) 7 times, $66$, see {doc}`x`.\n\n```python\n88\n```\n"
    )
    assert list(found_in(text)) == [(1, "12.5")]
    assert unheld("25", "noxfile.py: there is no such text") == "noxfile.py does not say 'there is no such text'"
    record = "docs/records/benchmarks/linear_average_op.json measurements.0.rows"
    assert unheld("1,000", record) == ""
    caption = "```{gradspec-curves} a/99.json time\n:height: 88\nFor 256 rows, {gradspec:number}`a.json b 77`.\n```\n"
    assert list(found_in(f"{caption}\n```{{gradspec-graph}} x\n66\n```\n\n{caption}")) == [(3, "256"), (12, "256")]
    assert list(found_in(f"````markdown\n{caption}````\n")) == []
    assert unheld("1,001", record).endswith("is 1000")
