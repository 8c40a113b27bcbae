"""Each single wrong edit fails the check that users run, and the message leads to the cause."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from drift.claim_edits import CLAIM_EDITS
from drift.code_edits import CODE_EDITS
from drift.edits import Edit, Site, Tests
from drift.page_edits import PAGE_EDITS
from drift.word_edits import WORD_EDITS
from drift.working_copy import ROOT, WorkingCopy

UNCAUGHT = tomllib.loads((Path(__file__).parent / "uncaught.toml").read_text(encoding="utf-8"))["edit"]
EDITS = (*CLAIM_EDITS, *CODE_EDITS, *PAGE_EDITS, *WORD_EDITS)
PAGE_ON_TRUST = "docs/explanation/how-far-you-can-trust-this.md"
every = pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.kind.replace(" ", "-"))


@every
def test_an_edit_is_caught(edit: Edit, copy: WorkingCopy) -> None:
    unedited = copy.passes_unedited(edit.check)
    assert unedited.returncode == 0, f"the check fails without the edit:\n{unedited.output}"
    with copy.edited(edit):
        done = copy.run(edit.check)
    assert done.returncode == 1, f"rc {done.returncode}: the edit is not caught, or the check crashes:\n{done.output}"
    assert re.search(edit.says, done.output, re.MULTILINE), f"nothing says {edit.says!r}:\n{done.output}"


def test_there_are_at_least_ninety_kinds() -> None:
    kinds = Counter(edit.kind for edit in EDITS)
    assert [kind for kind, count in kinds.items() if count > 1] == []
    assert len(kinds) >= 90


def test_the_page_on_trust_counts_the_edits() -> None:
    text = (ROOT / PAGE_ON_TRUST).read_text(encoding="utf-8")
    said = re.search(
        r"makes (\d+) single wrong edits [^.]*\. The documentation build alone catches (\d+) of the (\d+), a test "
        r"catches (\d+)\. Nothing catches (\d+) further edits",
        " ".join(text.split()),
    )
    assert said, f"{PAGE_ON_TRUST} says no longer how many edits are caught by what: teach this test"
    by = Counter(type(edit.check) for edit in EDITS)
    truth = (len(EDITS), by[Site], len(EDITS), by[Tests], len(UNCAUGHT))
    where = f"{PAGE_ON_TRUST}:{text.count(chr(10), 0, text.index('single wrong edits')) + 1}"
    assert tuple(map(int, said.groups())) == truth, f"{where} counts {said.groups()}, and the edits are {truth}"


@every
def test_an_edit_changes_what_stands_once_in_the_tree(edit: Edit) -> None:
    if edit.file.startswith("build/"):
        pytest.skip("it is made by the build")
    text = (ROOT / edit.file).read_text(encoding="utf-8")
    if edit.new is None:
        return
    changed = edit.applied(text)
    assert changed != text
    if edit.file.endswith(".py"):
        compile(changed, edit.file, "exec")


def test_a_message_is_not_matched_by_anything() -> None:
    assert [edit.kind for edit in EDITS if re.search(edit.says, "") or re.search(edit.says, "WARNING: build")] == []


@pytest.mark.parametrize("edit", UNCAUGHT, ids=lambda edit: edit["kind"].replace(" ", "-"))
def test_an_edit_that_nothing_catches_can_still_be_made_and_has_a_reason(edit: dict[str, str]) -> None:
    text = (ROOT / edit["file"]).read_text(encoding="utf-8")
    assert text.count(edit["old"]) == 1, f"tests/drift/uncaught.toml: {edit['file']} does not hold {edit['old']!r} once"
    assert edit["new"] not in text
    assert edit["reason"].endswith(".")
    assert edit["kind"] not in {caught.kind for caught in EDITS}, "it is among those that are caught"
