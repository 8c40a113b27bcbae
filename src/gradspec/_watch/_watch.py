"""`with gradspec.watch() as seen:`: what some lines of a program, or the cells of a notebook, run through."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import TracebackType

from gradspec._scope import Scope, scopes_of
from gradspec._watch._apart import audit_the_rest, can_fork, forked
from gradspec._watch._audits import audit_into
from gradspec._watch._handed import hand_over
from gradspec._watch._row import Program, together
from gradspec._watch._seen import Seen
from gradspec._watch._store import Store, read_watch, row_of
from gradspec._watch._text import seen_text
from gradspec._watch._uses import is_asked
from gradspec._watch._watcher import Watcher


class Watch:
    """The custom gradients that run within a `with` statement, and the calls of them that were kept."""

    def __init__(self, only: tuple[str, ...], scopes: tuple[Scope, ...]) -> None:
        self._only = only
        self._watcher = Watcher(scopes=scopes)

    def __enter__(self) -> Watch:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watcher.stop()

    @property
    def functions(self) -> tuple[str, ...]:
        """The Functions and operators that were called, by the names that the report has."""
        return tuple(seen.key for seen in self._seen())

    def audit(self, *, seed: int = 0) -> Program:
        """Audit each function on the calls that were kept, for training and for what the program uses.

        Each audit runs in a fork of this process. Where it cannot be forked, outside of Linux and macOS, and once CUDA
        is in use, it runs in a new one, which takes over the function and its calls; or in this one, if they cannot be
        pickled.

        Args:
            seed: of all random numbers.

        Returns:
            What was seen and found; `print` shows what `gradspec watch` does.
        """
        with tempfile.TemporaryDirectory(prefix="gradspec-watch-") as folder:
            store = Store(Path(folder))
            store.begin()
            for seen in self._seen():
                store.note(seen)
                place = store.place(seen)
                if can_fork():
                    forked(partial(audit_into, place, seen, seed=seed), place)
                elif not hand_over(seen, place):
                    audit_into(place, seen, seed=seed)
            store.end(self._watcher)
            audit_the_rest(Path(folder), lambda name: None, self._only, seed=seed)
            return read_watch(Path(folder)).with_files_in(None)

    def __str__(self) -> str:
        asked = self._seen()
        others = tuple(seen.package for seen in self._watcher.functions.values() if seen not in asked)
        rows = together(row_of(seen) for seen in asked)
        return seen_text(Program(rows=tuple(rows), others=others, troubles=tuple(self._watcher.troubles)))

    def _seen(self) -> list[Seen]:
        found = self._watcher.functions.values()
        return [seen for seen in found if is_asked(seen.key, seen.package, self._only)]


def watch(*, only: str | tuple[str, ...] = (), scopes: str | Iterable[str] = ()) -> Watch:
    """Watch which custom gradients some code runs through, and audit each on the calls that the code makes.

    Every `torch.autograd.Function` and every operator of `torch.library` that is not torch's own is noted: how often it
    was called, from where, with what kinds of arguments, and under what (autocast, a second derivative, `torch.func`,
    `torch.compile`). A few calls of each are kept. What the code computes is as without it.

    Args:
        only: the packages, modules or namespaces of operators that are asked about; all unless given.
        scopes: what each audit asks about, such as "training,compile"; training and what the code uses unless given.

    Returns:
        A context manager that gives itself. Its text is the table of what was seen, and `functions` are the names. Its
        `audit(seed=0)` judges each function on the calls that were kept, in a fork of this process where there can be
        one; the text of what that returns is the report of `gradspec watch`, `is_wrong` says whether a gradient is
        wrong in what the code uses, and `rows` has a row for each function.

    Raises:
        ValueError: there is no such scope.

    Example:
        >>> import torch, gradspec
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return 3 * grad
        >>> with gradspec.watch() as seen:
        ...     Double.apply(torch.randn(4, requires_grad=True)).sum().backward()
        >>> [name.rpartition(":")[2] for name in seen.functions]
        ['Double']
        >>> seen.audit().is_wrong
        True
    """
    return Watch((only,) if isinstance(only, str) else tuple(only), scopes_of(scopes) if scopes else ())
