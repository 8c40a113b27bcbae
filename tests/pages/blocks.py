"""The code blocks of the pages, read as MyST reads them: what stands in a fence, of which kind, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,}|:{3,})(?P<info>[^`\n]*)$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block."""

    #: The page, relative to `docs`.
    page: str
    #: The line of its first fence, from 1.
    line: int
    #: The line of its last one.
    end: int
    #: The first word behind the fence: `python`, `{toctree}`; empty where there is none.
    kind: str
    #: What stands behind that word.
    argument: str
    text: str

    @property
    def where(self) -> str:
        """Where to look, as a message and the id of a test say it."""
        return f"{self.page}:{self.line}"

    @property
    def is_doctest(self) -> bool:
        """Whether it is a transcript."""
        return ">>>" in self.text


def read_blocks(text: str, page: str) -> Iterator[Block]:
    """Yield the outermost blocks of a page.

    Raises:
        ValueError: a fence that is never closed.
    """
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        opened = _FENCE.match(line)
        if not opened:
            continue
        indent, ticks = len(opened["indent"]), opened["ticks"]
        kind, _, argument = opened["info"].strip().partition(" ")
        inside: list[str] = []
        end = number
        for at, following in lines:
            closing = following.strip()
            if closing and set(closing) == {ticks[0]} and len(closing) >= len(ticks):
                end = at
                break
            inside.append(following[indent:])
        else:
            raise ValueError(f"{page}:{number}: the fence is never closed")
        written = "".join(f"{line}\n" for line in inside)
        yield Block(page=page, line=number, end=end, kind=kind, argument=argument, text=written)


def all_blocks() -> list[Block]:
    """Return the blocks of every page of the site."""
    return [
        block
        for path in sorted(DOCS.rglob("*.md"))
        for block in read_blocks(path.read_text(encoding="utf-8"), path.relative_to(DOCS).as_posix())
    ]
