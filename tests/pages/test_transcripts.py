"""A transcript can be typed as it stands: Python's own prompt takes each line of it, and a box ends where it ends."""

from __future__ import annotations

import codeop
import re
import warnings

import pytest

from pages.blocks import Block, all_blocks

TRANSCRIPTS = [block for block in all_blocks() if block.kind == "python" and block.is_doctest]
#: Where an empty line below a transcript still stands.
OLD = ("functions/", "modules/")


def refused(text: str) -> str:
    """Return the first line at which the prompt would complain, or still wait when the next statement comes."""
    waiting: list[str] = []
    for line in text.splitlines():
        prompt = re.match(r"(>>>|\.\.\.)(?: |$)", line)
        if prompt is None:
            continue
        if prompt[1] == ">>>" and waiting:
            return line
        waiting.append(line[4:])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                done = codeop.compile_command("\n".join(waiting), symbol="single") is not None
        except SyntaxError:
            return line
        if done:
            waiting.clear()
    return ""


@pytest.mark.parametrize("block", TRANSCRIPTS, ids=lambda block: block.where)
def test_a_transcript_can_be_typed_line_by_line(block: Block) -> None:
    assert refused(block.text) == ""


@pytest.mark.parametrize("block", [b for b in TRANSCRIPTS if not b.page.startswith(OLD)], ids=lambda block: block.where)
def test_a_transcript_does_not_end_in_an_empty_line(block: Block) -> None:
    assert block.text.rstrip() + "\n" == block.text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (">>> class A:\n...     a = 1\n...\n...     b = 2\n...\n>>> A.b\n", "...     b = 2"),
        (">>> def f():\n...     return 1\n>>> f()\n1\n", ">>> f()"),
        (">>> def f():\n...     return 1\n...\n>>> f()\n1\n", ""),
        (">>> f(\n...     1,\n... )\n1\n>>> try:\n...     f()\n... except TypeError:\n...     pass\n", ""),
    ],
    ids=["a class with an empty line", "a def that is not ended", "a def that is ended", "several lines"],
)
def test_what_the_prompt_refuses_is_found(text: str, line: str) -> None:
    assert refused(text) == line
