"""The museum's table says of each mistake what the judges say on its page."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from pages.blocks import DOCS, read_blocks

MUSEUM = DOCS / "museum"
PAGES = sorted(path for path in MUSEUM.glob("*.md") if path.stem != "index")
INDEX = (MUSEUM / "index.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| \[(?P<title>.+)\]\((?P<page>[\w-]+)\.md\) \| [^|]+ \| (?P<cells>.+) \|$", re.MULTILINE)
JUDGES = ("gradcheck", "opcheck", "allclose", "gradspec")
#: How a page calls each judge, in the order of the columns.
CALLS = ("torch.autograd.gradcheck(", "set(torch.library.opcheck(", "torch.allclose(", "gradspec.check(")


def judged(text: str, section: str) -> list[str]:
    """Return what the judges say in a section of a page: "misses it" or "finds it", in the order of the columns."""
    (words,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    (block,) = read_blocks(words, "a page")
    examples = doctest.DocTestParser().get_examples(block.text)
    wants = [next(one.want for one in examples if one.source.startswith(call)) for call in CALLS]
    return ["misses it" if want in ("True\n", "{'SUCCESS'}\n") else "finds it" for want in wants]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_table_says_what_the_judges_say_on_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    (row,) = (row for row in ROW.finditer(INDEX) if row["page"] == page.stem)

    assert text.startswith(f"# {row['title']}\n")
    assert judged(text, "An input that shows it") == row["cells"].split(" | ")
    assert judged(text, "An input that hides it") == ["misses it"] * len(JUDGES), "the index says so"


def test_the_table_and_the_contents_have_every_page() -> None:
    (contents,) = (block.text.split()[1:] for block in read_blocks(INDEX, "index") if block.kind == "{toctree}")

    assert f"| {' | '.join(JUDGES)} |" in INDEX
    assert [row["page"] for row in ROW.finditer(INDEX)] == contents
    assert sorted(contents) == [page.stem for page in PAGES]


def test_a_judge_that_fails_is_told_from_one_that_passes() -> None:
    calls = [f">>> {call}f, args)\n" for call in CALLS]
    said = ["False\n", "{'SUCCESS'}\n", "True\n", "Traceback (most recent call last):\ngradspec.CheckError: ...\n"]
    block = "".join(call + answer for call, answer in zip(calls, said, strict=True))

    assert judged(f"## A\n\n```python\n{block}```\n\n## B\n", "A") == ["finds it", "misses it", "misses it", "finds it"]
