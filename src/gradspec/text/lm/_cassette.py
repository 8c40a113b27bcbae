"""A whole run in one file of text: recorded, gone on with, or replayed without asking a model."""

from __future__ import annotations

import difflib
import os
import threading
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from gradspec.text._events import Retried, emit, watched
from gradspec.text._scheduling._position import PLACE, Place, Position
from gradspec.text.lm import _meter
from gradspec.text.lm._cassette_text import HEAD, Entry, ending, parsed, request_lines, shortened, shown
from gradspec.text.lm._errors import DriftError
from gradspec.text.lm._model import Completion, Message
from gradspec.text.lm._tape import inside, put_in, take_out

MODES = ("record", "resume", "replay")


class Cassette:
    """Record every call of a model in a block, in a file of text that one can review; or replay it from there.

    A call is known by its position in the program and by its whole request. So a run is the same cassette whatever
    `concurrency` it had, and is replayed under any. What failed is in it too, and after which errors a `Client` asked
    again. A replay asks no model, no cache and no budget, and waits for nothing. If it asks something else than was
    recorded, it ends with an error that shows from which call on the runs differ, as a diff.

    A call is in the file as soon as it is paid. Keys and headers are never in it, nor options that are named like them;
    what you write into a prompt is. Calls in threads of your own have the position in which they happen to begin.

    Args:
        path: The file.
        mode: `record` begins a new file; `resume` goes on with one of a run that was killed or failed, and asks only
            for what is missing, and for what failed; `replay` asks nothing.

    Raises:
        FileExistsError: there is a file, and the mode is `record`.
        FileNotFoundError: there is none, and the mode is `replay`.
        ValueError: the file is not a cassette, or one to be replayed is of a run that was killed.
        DriftError: the run asks something else than was recorded, or less.

    Examples:
        >>> import pathlib, tempfile
        >>> from gradspec.text.lm import Cassette, RuleModel, complete
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.cassette"
        >>> with Cassette(path):
        ...     complete(RuleModel({"7": "Yes."}), "Is 7 prime?").text
        'Yes.'
        >>> print(path.read_text())
        gradspec cassette 1
        <BLANKLINE>
        call 1
        model "model"
        user
        | Is 7 prime?
        reply
        | Yes.
        usage 3 1
        end
        <BLANKLINE>
        run of 1 call
        <BLANKLINE>
    """

    def __init__(self, path: str | os.PathLike[str], *, mode: Literal["record", "resume", "replay"] = "record") -> None:
        if mode not in MODES:
            raise ValueError(f"mode is {', '.join(MODES[:-1])} or {MODES[-1]}, not {mode!r}")
        self.path, self.mode = Path(path), mode
        self._lock = threading.Lock()
        self._file: int | None = None
        self._known: dict[Position, Entry] = {}
        self._asked: set[Position] = set()
        self._drifts: dict[Position, DriftError] = {}
        #: Whether a call could not be written down.
        self._lost = False
        #: How many were, whether they are in the order of the program, and the position of the last one.
        self._count, self._in_order = 0, True
        self._last: Position = (-1,)

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, mode={self.mode!r})"

    def __enter__(self) -> Cassette:
        put_in(self)
        try:
            self._open()
        except BaseException:
            take_out(self)
            raise
        self._process, self._root = os.getpid(), Place()
        self._token = PLACE.set(self._root)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        PLACE.reset(self._token)
        take_out(self)
        self._close(error)
        if self._drifts and (error is None or isinstance(error, DriftError)):
            first = self._drifts[min(self._drifts)]  # of several at once, the first in the program
            if first is not error:
                raise first from None
        if error is None and self.mode == "replay":
            self._check_all_asked()

    def take(
        self,
        model: object,
        messages: Sequence[Message],
        options: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,
        sample: int = 0,
    ) -> Take:
        """Return the next call at this place of the program."""
        if os.getpid() != self._process:
            raise RuntimeError(f"{self!r} records the process that opened it, and not one that was forked from it")
        position = shortened((PLACE.get() or self._root).next())
        lines = request_lines(_meter.name_of(model), _address(model), messages, options, schema, sample)
        return Take(self, position, lines, _meter.name_of(model))

    def found(self, position: Position, request: tuple[str, ...]) -> Entry | None:
        """Return what is recorded of a call; None if it is to be made.

        Raises:
            DriftError: something else is recorded there, or a replay makes a call that is not recorded.
        """
        entry = self._known.get(position)
        if self.mode == "replay":
            with self._lock:
                self._asked.add(position)
        if entry is not None and entry.request == request:
            return entry
        if entry is None and self.mode != "replay":
            return None
        recorded = () if entry is None else entry.request
        drift = self._drift(position, recorded, request)
        with self._lock:
            self._drifts[position] = drift
        raise drift

    def keep(self, entry: Entry) -> None:
        """Write a call down; where that fails, say so and lose nothing."""
        with self._lock:
            if self._file is None:
                return
            whole = os.fstat(self._file).st_size
            try:
                _write(self._file, f"{entry.text}\n")
                self._in_order &= entry.position > self._last
                self._count, self._last = self._count + 1, entry.position
            except OSError as error:
                os.ftruncate(self._file, whole)  # what comes next must not stand behind half a call
                self._lost = True
                warnings.warn(
                    f"a reply was paid and is returned, and not kept in {self.path}: {error.strerror}", stacklevel=2
                )

    def _open(self) -> None:
        if self.mode == "record":
            try:
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            except FileExistsError:
                raise FileExistsError(
                    f"{self.path} exists already; delete it, name another file, or pass mode='resume' or 'replay'"
                ) from None
            _write(self._file, f"{HEAD}\n\n")
            return
        if self.mode == "resume" and not self.path.exists():
            entries: list[Entry] = []
        else:
            entries, ended = self._read()
            if self.mode == "replay" and ended is None:
                raise ValueError(f"{self.path} is of a run that did not come to its end; mode='resume' goes on with it")
        if self.mode == "resume":
            entries = [entry for entry in entries if isinstance(entry.outcome, Completion)]
            self._replace(entries, None)  # without what a kill has torn
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._known = {shortened(entry.position): entry for entry in entries}
        if len(self._known) < len(entries):
            raise ValueError(f"{self.path} has two calls at one position")

    def _read(self) -> tuple[list[Entry], str | None]:
        try:
            text = self.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not a cassette: {error}") from None
        return parsed(text, str(self.path))

    def _close(self, error: BaseException | None) -> None:
        with self._lock:
            file, self._file = self._file, None
        if file is None:
            return
        try:
            if self.mode == "record" and self._in_order and not self._lost:  # a long run is not read into memory
                _write(file, f"{ending(self._count, error)}\n")
                return
            entries, _ = self._read()
            last = None if self._lost else ending(len(entries), error)
            self._replace(sorted(entries, key=lambda entry: entry.position), last)
        except OSError as problem:
            warnings.warn(f"{self.path} has every call, and no end: {problem.strerror}", stacklevel=3)
        finally:
            os.close(file)

    def _replace(self, entries: Sequence[Entry], last: str | None) -> None:
        """Write the file so that a reader finds the one before or this one."""
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        calls = "".join(f"{entry.text}\n" for entry in entries)
        try:
            beside.write_bytes(f"{HEAD}\n\n{calls}{'' if last is None else last + chr(10)}".encode())
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def _drift(self, position: Position, recorded: tuple[str, ...], request: tuple[str, ...]) -> DriftError:
        known = sorted(self._known)
        number = bisect_left(known, position) + 1
        what = "is not what was recorded" if recorded else "was not recorded"
        diff = "\n".join(difflib.unified_diff(recorded, request, "recorded", "this run", n=2, lineterm=""))
        return DriftError(f"call {shown(position)}, number {number} of {len(known)} in {self.path}, {what}:\n{diff}")

    def _check_all_asked(self) -> None:
        left = sorted(self._known.keys() - self._asked)
        if left:
            asks = "\n".join(self._known[left[0]].request)
            raise DriftError(
                f"the run ended without {len(left)} of the {len(self._known)} calls in {self.path}; the first of them "
                f"is call {shown(left[0])}:\n{asks}"
            )


class Take:
    """One call that a cassette records or answers."""

    def __init__(self, cassette: Cassette, position: Position, request: tuple[str, ...], name: str) -> None:
        self._cassette, self._position, self._request, self._name = cassette, position, request, name
        #: The names of the errors after which it was asked again.
        self.retried: list[str] = []

    def found(self) -> Completion | None:
        """Return the recorded reply, or raise the recorded error; None if the call is to be made."""
        entry = self._cassette.found(self._position, self._request)
        if entry is None:
            return None
        for attempt, error in enumerate(entry.retried, 1) if watched() else ():
            emit(Retried(model=self._name, attempt=attempt, delay=0.0, error=error))
        if isinstance(entry.outcome, Completion):
            return entry.outcome
        raise entry.outcome

    @contextmanager
    def recorded(self) -> Iterator[Callable[[Completion], Completion]]:
        """Give what records the reply of the call that is made in a block; an error is recorded too."""

        def keep(outcome: Completion | Exception) -> None:
            retried = tuple(self.retried)
            self._cassette.keep(Entry(position=self._position, request=self._request, retried=retried, outcome=outcome))

        def replied(completion: Completion) -> Completion:
            keep(completion)
            return completion

        with inside():
            try:
                yield replied
            except Exception as error:
                keep(error)
                raise


def _address(model: object) -> str | None:
    try:
        identity = getattr(model, "identity", None) or {}
    except TypeError:  # a model that cannot be cached says so
        return None
    address = identity.get("base_url")
    return address if isinstance(address, str) else None


def _write(file: int, text: str) -> None:
    data = text.encode("utf-8")
    while data:
        data = data[os.write(file, data) :]
