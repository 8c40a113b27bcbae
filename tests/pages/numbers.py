"""Numbers that are typed by hand: which a text has, and whether what is said to hold one does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradspec._record import read_experiment
from gradspec_lab.sphinx.drawing._plot_record import number_of

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)*(?:e[+-]?\d+)?(?!\w)")
#: "FILE: TEXT", of one line or more, and "RECORD.json PATH".
HELD, RECORDED = re.compile(r"([\w./-]+\.\w+): (.+)", re.DOTALL), re.compile(r"(docs/records/\S+\.json) (\S+)")


def blank(text: str) -> str:
    """Return as many lines as a text has, of spaces."""
    return re.sub(r"[^\n]", " ", text)


def numbers(text: str, not_prose: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each number outside what the patterns match, but for single digits."""
    for pattern in not_prose:
        text = re.sub(pattern, lambda match: blank(match[0]), text, flags=re.MULTILINE | re.DOTALL)
    for match in NUMBER.finditer(text):
        if not re.fullmatch(r"\d", found := match[0].rstrip(".,")):
            yield text.count("\n", 0, match.start()) + 1, found


def unheld(number: str, held: str | list[str]) -> str:
    """Return why what is said to hold a number does not; empty if it does, or if a sentence says why it need not."""
    if isinstance(held, list):
        return "; ".join(filter(None, (unheld(number, one) for one in held)))
    if recorded := RECORDED.fullmatch(held):
        value = number_of(read_experiment(ROOT / recorded[1]), recorded[2])
        return "" if f"{value:,}" == number else f"{held} is {value}"
    if match := HELD.fullmatch(held):
        file, text = match.groups()
        there = (ROOT / file).exists() and text in (ROOT / file).read_text(encoding="utf-8")
        return "" if there else f"{file} does not say {text!r}"
    return "" if held.endswith(".") else f"{held!r} is neither a place nor a reason"
