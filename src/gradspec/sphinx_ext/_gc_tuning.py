"""Python's search for cycles of objects, kept out of the way of a build.

A build of one page imports torch and reads the environment: half a million objects that live until its end. Python
looks through them again and again while they come, and once more when the process ends; that took a third to a half
of the time of such a build. So the search is rarer while a build runs, as in mypy, and what the process has at its end
goes back to the system with the process.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

from gradspec._searches import skip_last_search

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: New objects between two searches, and how many of these make one of an older generation (Python: 700, 10, 10).
RARE = (200_000, 30, 30)


def setup(app: Sphinx) -> None:
    """Search rarely until the build is finished; a process that searches even less, or not at all, keeps its way."""
    before = gc.get_threshold()
    if not 0 < before[0] < RARE[0]:
        return
    gc.set_threshold(*RARE)
    app.connect("build-finished", partial(_restore, before))
    skip_last_search()


def _restore(before: tuple[int, int, int], _app: Sphinx, _exception: Exception | None) -> None:
    gc.set_threshold(*before)
