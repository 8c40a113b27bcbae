"""Where a page names the laws of which something is so, these are the laws of which it is so."""

from __future__ import annotations

import re

import pytest

from gradspec.laws import LAWS
from gradspec_lab.selftest._judging import NEEDS_CUDA
from pages.blocks import ROOT

#: The page, what leads to the names and what follows them, and which laws it is true of.
NAMED = (
    (
        "docs/how-to/run-on-cuda.md",
        r"the laws that need a process of their own,\s",
        r",\s+are not\s+measured",
        lambda law: law.cost == "process",
    ),
    (
        "docs/how-to/run-on-cuda.md",
        r"The laws that only a device can measure,\s",
        r",\s+say `not measured`",
        lambda law: law.name in NEEDS_CUDA,
    ),
)


@pytest.mark.parametrize(("file", "before", "after", "is_so"), NAMED)
def test_the_laws_that_a_page_names_are_those_of_which_it_is_so(file, before, after, is_so) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.search(rf"{before}([^.]*?){after}", text)
    assert found, f"{file} says no longer {before!r}: teach this test where it names the laws"
    line = text.count("\n", 0, found.start(1)) + 1
    named, truth = set(re.findall(r"`(\w+)`", found[1])), {law.name for law in LAWS if is_so(law)}
    assert named == truth, f"{file}:{line} names {sorted(named)}, and it is so of {sorted(truth)}"
