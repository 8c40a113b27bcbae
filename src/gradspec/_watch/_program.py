"""The watch of a whole program: it begins as torch is imported, and ends with an audit as the program does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gradspec._scope import Scope
from gradspec._watch._apart import can_fork, ended, forked, started
from gradspec._watch._handed import hand_over
from gradspec._watch._importing import here
from gradspec._watch._seen import Seen
from gradspec._watch._store import FUNCTION, Store, rows_in
from gradspec._watch._uses import is_asked
from gradspec._watch._watcher import Watcher


class ProgramWatch:
    """The watch of this process, which writes what it sees to a folder.

    Args:
        folder: where.
        only: the packages that are asked about; all if empty.
        scopes: what each audit asks about; if empty, training and what the program uses.
        at: after how many calls a function is audited; 0 is the end.
        on_first: called with the first call of each function.
    """

    def __init__(
        self,
        folder: Path,
        *,
        only: tuple[str, ...] = (),
        scopes: tuple[Scope, ...] = (),
        at: int = 0,
        on_first: Callable[[], object] | None = None,
    ) -> None:
        self._folder, self._only, self._at, self._on_first = folder, only, at, on_first
        #: The audits that run beside the program.
        self._running: dict[Path, int] = {}
        self._process, self._is_over = os.getpid(), False
        self.store = Store(folder)
        self.watcher = Watcher(self._note, at=at, scopes=scopes)

    def start(self) -> None:
        """Begin, and go on in each process that this one forks."""
        self.store.begin()
        self.watcher.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_a_fork)

    def _note(self, seen: Seen) -> None:
        """Write what is known of a function, and audit it beside the program once it was called often enough."""
        self.store.note(seen)
        if seen.forwards == 1 and self._on_first and os.getpid() == self._process:
            self._on_first()
        is_plain = not torch._C._are_functorch_transforms_active() and torch._C._current_graph_task_id() == -1
        if not self._at or seen.forwards < self._at or not is_plain or not self._is_asked(seen) or not can_fork():
            return
        if self.store.claims(seen.key, seen.where):
            place = self.store.place(seen)
            self._is_over = True  # what is forked now is not the program
            self._running[place] = started(partial(self._beside, seen, place), place)
            self._is_over = False

    def _beside(self, seen: Seen, place: Path) -> None:
        self.watcher.stop()
        _audit(place, seen)

    def _is_asked(self, seen: Seen) -> bool:
        return is_asked(seen.key, seen.package, self._only)

    def end(self) -> None:
        """Write the counts, take the hooks out, and audit what no other process audits."""
        if self._is_over:
            return
        if os.getpid() != self._process:  # a fork that exits as a program does
            self.counts()
            return
        self._is_over = True
        self.watcher.stop()
        self.store.end(self.watcher)
        for place, child in self._running.items():
            ended(child, place)
        asked = [seen for seen in self.watcher.functions.values() if self._is_asked(seen)]
        if not can_fork():  # the command audits them
            for seen in asked:
                hand_over(seen, self.store.place(seen))
            return
        for number, seen in enumerate(asked, 1):
            if not self.store.claims(seen.key, seen.where):
                continue
            if sys.stderr is not None and sys.stderr.isatty():
                print(f"gradspec watch: audit {number} of {len(asked)}: {seen.key}", file=sys.stderr, flush=True)
            place = self.store.place(seen)
            forked(partial(_audit, place, seen), place)

        for place, row in rows_in(self._folder):  # what only its children have seen
            if not is_asked(row.key, row.package, self._only):
                continue
            target = here(json.loads((place / FUNCTION).read_text(encoding="utf-8"))["home"])
            if target is None or not row.files or not self.store.claims(row.key, row.where):
                continue
            forked(partial(_audit_of, place, target), place)

    def _in_a_fork(self) -> None:
        """Start again in a child: what the parent saw is the parent's."""
        if self._is_over:
            return
        self.watcher.forget()
        self._running = {}
        self.store = Store(self._folder)
        self.store.begin()
        if "multiprocessing.util" in sys.modules:  # such a child ends by os._exit, after its finalizers
            from multiprocessing import util

            util.register_after_fork(self, lambda watch: util.Finalize(None, watch.counts, exitpriority=0))

    def counts(self) -> None:
        """Write the counts of a child that audits nothing itself."""
        self.store.end(self.watcher)


# Imported in the fork, and not by the program: with them comes the whole engine.
def _audit(place: Path, seen: Seen) -> None:
    from gradspec._watch._audits import audit_into

    audit_into(place, seen)


def _audit_of(place: Path, target: Any) -> None:
    from gradspec._watch import _alone

    _alone.main(place, target)
