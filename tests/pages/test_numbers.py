"""A number in the prose of a page comes through a role, or is listed in numbers.toml with what holds it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradspec._record import read_experiment
from gradspec.sphinx_ext.drawing._plot_record import number_of

ROOT = Path(__file__).parents[2]
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
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)*(?!\w)")
#: "FILE: TEXT", and "RECORD.json PATH".
HELD, RECORDED = re.compile(r"([\w./-]+\.\w+): (.+)"), re.compile(r"(docs/records/\S+\.json) (\S+)")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of what people read."""
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        # A build writes the pages of laws, from docstrings.
        if path.parent.name != "laws" or path.stem in ("index", "kill-matrix"):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def numbers(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each number in the prose of a page, but for single digits."""
    for pattern in NOT_PROSE:
        text = re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE | re.DOTALL)
    for match in NUMBER.finditer(text):
        if not re.fullmatch(r"\d", found := match[0].rstrip(".,")):
            yield text.count("\n", 0, match.start()) + 1, found


def unheld(number: str, held: str) -> str:
    """Return why what is said to hold a number does not; empty if it does, or if a sentence says why it need not."""
    if recorded := RECORDED.fullmatch(held):
        value = number_of(read_experiment(ROOT / recorded[1]), recorded[2])
        return "" if f"{value:,}" == number else f"{held} is {value}"
    if match := HELD.fullmatch(held):
        file, text = match.groups()
        there = (ROOT / file).exists() and text in (ROOT / file).read_text(encoding="utf-8")
        return "" if there else f"{file} does not say {text!r}"
    return "" if held.endswith(".") else f"{held!r} is neither a place nor a reason"


def test_a_number_in_prose_comes_through_a_role_or_is_listed() -> None:
    unlisted = [
        f"{name}:{line}: {number} is typed by hand: take it from a record with gradspec:number, or list what holds it"
        for name, text in pages()
        for line, number in numbers(text)
        if number not in LISTED.get(name, {})
    ]
    assert unlisted == []


def test_what_is_listed_is_still_on_its_page() -> None:
    found = {name: {number for _, number in numbers(text)} for name, text in pages()}
    assert [(name, number) for name, held in LISTED.items() for number in held if number not in found[name]] == []


@pytest.mark.parametrize("name", LISTED)
def test_what_holds_a_number_has_it(name: str) -> None:
    faults = {number: unheld(number, held) for number, held in LISTED[name].items()}
    assert [f"{name}: {number}: {fault}" for number, fault in faults.items() if fault] == []


def test_prose_is_told_from_the_rest() -> None:
    text = (
        "It takes 12.5 ms, in `f(33)` {role}`a 44` [here](a/55.md) 7 times, $66$, see {doc}`x`.\n\n```python\n88\n```\n"
    )
    assert list(numbers(text)) == [(1, "12.5")]
    assert unheld("25", "noxfile.py: there is no such text") == "noxfile.py does not say 'there is no such text'"
    record = "docs/records/benchmarks/linear_average_op.json measurements.0.rows"
    assert unheld("1,000", record) == ""
    assert unheld("1,001", record).endswith("is 1000")
