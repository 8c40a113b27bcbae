"""`gradspec events`: how far a run of text autodiff is, and what it has cost, from the file of its events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TextIO

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gradspec.cli import _screen
from gradspec.cli._shared import Unusable, block, one_line_errors

#: Seconds between two looks at a file that is followed.
LOOK = 0.2
MODEL = "gen_ai.request.model"


@dataclass(kw_only=True)
class Row:
    """The calls of one model."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    retries: int = 0
    cached: int = 0
    tokens: tuple[int, int] = (0, 0)


@dataclass(kw_only=True)
class Summary:
    """The totals of a file of events."""

    models: dict[str, Row] = field(default_factory=dict)
    steps: int = 0
    passes: int = 0

    def add(self, event: str, attributes: Mapping[str, Any]) -> None:
        """Count an event."""
        if event == "backward_step":
            self.steps += 1
        elif event == "commit":
            self.passes += 1
        elif event in ("call", "retry", "cache_hit"):
            self._asked(event, attributes, self.models.setdefault(str(attributes.get(MODEL, "model")), Row()))

    def _asked(self, event: str, attributes: Mapping[str, Any], row: Row) -> None:
        if event == "retry":
            row.retries += 1
        elif event == "cache_hit":
            row.cached += 1
        else:
            row.seconds.append(float(attributes.get("gen_ai.client.operation.duration", 0)))
            row.failed += "error.type" in attributes
            used = (int(attributes.get(f"gen_ai.usage.{way}_tokens") or 0) for way in ("input", "output"))
            row.tokens = tuple(a + b for a, b in zip(row.tokens, used, strict=True))  # type: ignore[assignment]

    def table(self, prices: Mapping[str, tuple[float, float]]) -> Table:
        """Return a row for each model, with money where there are prices."""
        heads = ["calls", "failed", "retries", "cached", "input", "output", "seconds", *(["money"] if prices else [])]
        table = Table(title=f"{self.steps} backward steps, {self.passes} passes", title_justify="left")
        table.add_column("model")
        for head in heads:
            table.add_column(head, justify="right")
        for name, row in sorted(self.models.items()):
            counts = [len(row.seconds), row.failed, row.retries, row.cached, *row.tokens]
            took = f"{median(row.seconds):.3f}" if row.seconds else "-"
            money = [_money(row, prices.get(name))] if prices else []
            table.add_row(Text(name, "bold"), *map(str, counts), took, *money)
        return table


@click.command(
    epilog=block("Examples", "gradspec events run.jsonl", "gradspec events run.jsonl --follow --price gpt-4o=2.5,10")
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--follow", is_flag=True, help="Follow the file as it grows, until Ctrl-C.")
@click.option(
    "--price",
    "priced",
    multiple=True,
    metavar="MODEL=IN,OUT",
    help="Price of a million input and output tokens; repeatable.",
)
def events(file: Path, follow: bool, priced: tuple[str, ...]) -> None:
    """Show the model calls of a text autodiff run, and their cost.

    FILE is what `gradspec.text.JsonLines` has written. The column `seconds` is the median of a call.
    """
    prices, summary = dict(map(_price, priced)), Summary()
    screen = _screen.console()
    with one_line_errors(), file.open(encoding="utf-8", errors="replace") as opened:
        read(opened, summary)
        if follow:
            with Live(summary.table(prices), console=screen, auto_refresh=False, transient=True) as live:
                watch(opened, summary, lambda: live.update(summary.table(prices), refresh=True))
    _screen.put(screen, summary.table(prices))


def watch(opened: TextIO, summary: Summary, show: Callable[[], object]) -> None:
    """Read a file as it grows and show it, until Ctrl-C."""
    try:
        while True:
            time.sleep(LOOK)
            if read(opened, summary):
                show()
    except KeyboardInterrupt:
        return


def read(opened: TextIO, summary: Summary) -> int:
    """Count the events of the complete lines, and return their number."""
    found = 0
    for line in _whole_lines(opened):
        try:
            event = json.loads(line)
            summary.add(event["event"], event["attributes"])
        except (ValueError, LookupError, TypeError, AttributeError):
            raise Unusable(f"{opened.name} is not a file of events; one of its lines is {line[:80]!r}") from None
        found += 1
    return found


def _whole_lines(opened: TextIO) -> Iterator[str]:
    while True:
        place = opened.tell()
        line = opened.readline()
        if not line.endswith("\n"):  # the end, or a line that is being written
            opened.seek(place)
            return
        yield line


def _price(text: str) -> tuple[str, tuple[float, float]]:
    name, _, prices = text.rpartition("=")
    try:
        said, replied = map(float, prices.split(","))
        if not (0 <= said < math.inf and 0 <= replied < math.inf):
            raise ValueError
    except ValueError:
        raise Unusable(f"a price is MODEL=IN,OUT, such as gpt-4o=2.5,10, not {text!r}") from None
    return name, (said, replied)


def _money(row: Row, price: tuple[float, float] | None) -> str:
    return "-" if price is None else f"{(row.tokens[0] * price[0] + row.tokens[1] * price[1]) / 1e6:.4f}"
