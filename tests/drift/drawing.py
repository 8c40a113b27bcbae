"""Which edits a check of one change makes: those of the files that changed, and some more, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from commits import changed, git
from drift.edits import Edit


def drawn(edits: Iterable[Edit], count: int, since: str | None, root: Path) -> set[str]:
    """Return the kinds of edits to make: of the files that changed since a commit, and `count` others.

    Without a commit it is the one before, where the clone has it: one of depth 1 draws only. The others are
    drawn by the name of the commit that is checked: a second run makes the same ones, and another commit others.

    Raises:
        ValueError: `since` is no commit of the repository.
    """
    files = set(changed(root, since))
    of_change = {edit.kind for edit in edits if edit.file in files}
    others = sorted({edit.kind for edit in edits} - of_change)
    return of_change | set(random.Random(git(root, "rev-parse", "HEAD")).sample(others, min(count, len(others))))
