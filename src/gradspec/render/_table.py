"""The table of a report: a row for each law, a column for each spec of a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from gradspec.render._text import SIGNS, counts, specs_by_kind, words

if TYPE_CHECKING:
    from gradspec.render._text import Standing
    from gradspec.report import Report


def law_rows(report: Report, specs: Sequence[str]) -> Iterator[tuple[str, list[Mapping[Standing, int]]]]:
    """Yield each law that judged one of the specs, and for each spec how many of its verdicts have which status."""
    mine = [verdict for verdict in report.verdicts if verdict.spec in specs]
    for law in dict.fromkeys(verdict.law for verdict in mine):
        yield law, [counts(v for v in mine if (v.law, v.spec) == (law, spec)) for spec in specs]


def counted(status: Standing, number: int, *, signs: bool = True) -> str:
    """Return how many verdicts have a status: "✓ holds 3", or without the sign, in ASCII."""
    return " ".join([*([SIGNS[status]] if signs else []), words(status), str(number)])


def tables(report: Report, *, signs: bool = True) -> Iterator[str]:
    """Yield the table of each kind of spec as text, as wide as it needs to be; in ASCII if without signs."""
    for specs in specs_by_kind(report):
        rows = [("law", *specs)]
        for law, numbers in law_rows(report, specs):
            cells = (", ".join(counted(*one, signs=signs) for one in number.items()) for number in numbers)
            rows.append((law, *cells))
        yield _drawn(rows, rule="─" if signs else "-")


def _drawn(rows: Sequence[Sequence[str]], *, rule: str) -> str:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    padded = ((cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)) for row in rows)
    head, *body = (f" {'   '.join(cells)}".rstrip() for cells in padded)
    return "\n".join(["", head, f" {rule * (sum(widths) + 3 * (len(widths) - 1))}", *body, ""])


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
