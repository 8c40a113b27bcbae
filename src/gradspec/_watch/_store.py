"""The folder of a watch: what each process saw, the calls that it kept, and what the audits found."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradspec._watch._kept import Kept
from gradspec._watch._row import Program, Row, together
from gradspec._watch._seen import Seen
from gradspec._watch._uses import BEGAN_IN, is_asked
from gradspec._watch._watcher import Watcher
from gradspec.report import RecordError, Report, read_record, write_record

#: What a process writes of itself, and of one function.
PROCESS, FUNCTION, REPORT = "process.json", "function.json", "report.json"


class Store:
    """The files that one process writes about the functions that it sees.

    Args:
        folder: of the whole watch; the process has one of its own in it.
    """

    def __init__(self, folder: Path) -> None:
        self.whole = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folder))
        self._numbers: dict[int, int] = {}
        #: The files of the calls of each function that are written; the calls are held, that no other has their number.
        self._saved: dict[int, dict[Kept, str]] = {}
        self._lock = threading.RLock()

    def begin(self) -> None:
        """Write that this process is watched, and how another one imports what it has."""
        plain = {"pid": os.getpid(), "executable": sys.executable, "path": sys.path, "folder": BEGAN_IN}
        _write(self.folder / PROCESS, {**plain, "troubles": [], "is_over": False})

    def note(self, seen: Seen) -> None:
        """Write a function, and those of its calls that are not written yet."""
        from gradspec._watch._importing import home_of, importable, modules_of_the_program

        with self._lock:  # threads of the program call it at once
            calls = tuple(seen.calls)
            place = self.place(seen)
            place.mkdir(exist_ok=True)
            written = self._saved.setdefault(id(seen), {})
            for call in calls:
                if call not in written:
                    file = place / f"call-{len(written) + 1}.safetensors"
                    written[call] = _save(file, call.args, call.kwargs, seen.key)
            row = row_of(seen, files=tuple(filter(None, (written[call] for call in calls))))
            about: dict[str, Any] = {"path": importable(seen), "home": home_of(seen)}
            if seen.is_operator:
                about["modules"] = modules_of_the_program()
            _write(place / FUNCTION, {**row.to_dict(), **about})

    def end(self, watcher: Watcher) -> None:
        """Write the counts of all functions, and what went wrong in the watch."""
        for seen in list(watcher.functions.values()):
            self.note(seen)
        about = json.loads((self.folder / PROCESS).read_text(encoding="utf-8"))
        _write(self.folder / PROCESS, {**about, "troubles": list(watcher.troubles), "is_over": True})

    def place(self, seen: Seen) -> Path:
        """Return the folder of a function."""
        return self.folder / str(self._numbers.setdefault(id(seen), len(self._numbers) + 1))

    def claims(self, key: str, where: str) -> bool:
        """Whether this process is the one to audit a function; of several that saw it the first that asks."""
        return claims(self.whole, key, where)


def claims(folder: Path, key: str, where: str) -> bool:
    """Whether the caller is the first that asks to audit a function."""
    name = hashlib.sha256(f"{key} {where}".encode()).hexdigest()[:24]
    try:
        (folder / f"claim-{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def row_of(seen: Seen, **more: Any) -> Row:
    """Return what is said of a function, before an audit."""
    return Row(
        key=seen.key,
        package=seen.package,
        where=seen.where,
        is_operator=seen.is_operator,
        forwards=seen.forwards,
        backwards=seen.backwards,
        traced=seen.traced,
        not_finite=seen.not_finite,
        uses=tuple(sorted(seen.uses)),
        scopes=seen.scopes,
        lines=tuple(seen.lines),
        kinds=tuple(seen.kinds.values()),
        **more,
    )


def answered(place: Path, report: Any = None, why: str = "") -> None:
    """Write what the audit of a function found, or why there is none."""
    if report is not None:
        write_record(report, place / REPORT)
    else:
        (place / "why.txt").write_text(why, encoding="utf-8")


def read_watch(folder: Path, *, only: tuple[str, ...] = (), baseline: Report | None = None) -> Program:
    """Return what all processes of a watch wrote.

    Args:
        folder: of the watch.
        only: the packages that are asked about; all if empty.
        baseline: an earlier record: what it has too does not fail.
    """
    processes = {file.parent: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob(f"*/{PROCESS}")}
    troubles = [one for process in processes.values() for one in process["troubles"]]
    troubles += [file.read_text(encoding="utf-8") for file in folder.glob("trouble-*.txt")]
    found = list(rows_in(folder))
    callers = {place.parent for place, row in found if is_asked(row.key, row.package, only)}
    if cut_off := sum(not processes[process]["is_over"] for process in callers):
        ended = "1 process" if cut_off == 1 else f"{cut_off} processes"
        whose = "its" if cut_off == 1 else "their"
        troubles.append(f"{ended} ended by exec, os._exit or a kill: {whose} calls are counted until the last save")
    rows = together(replace(row, baseline=baseline) for _, row in found)
    asked = tuple(row for row in rows if is_asked(row.key, row.package, only))
    about: Any = {"processes": len(processes), "callers": len(callers)}
    about |= {"others": tuple(row.package for row in rows if row not in asked)}
    return Program(rows=asked, troubles=tuple(dict.fromkeys(troubles)), **about)


def rows_in(folder: Path) -> Iterator[tuple[Path, Row]]:
    """Yield each function of each process with its folder."""
    for file in sorted(folder.glob(f"*/*/{FUNCTION}")):
        data = json.loads(file.read_text(encoding="utf-8"))
        data = {name: value for name, value in data.items() if name not in ("path", "home", "modules")}
        report, why = None, ""
        if (file.parent / REPORT).exists():
            try:
                report = read_record(file.parent / REPORT)
            except RecordError as error:
                why = str(error)
        if (file.parent / "why.txt").exists():
            why = (file.parent / "why.txt").read_text(encoding="utf-8")
        yield file.parent, Row.from_dict({**data, "why": why}, report)


def _save(path: Path, args: Any, kwargs: Any, key: str) -> str:
    """Return the path of a call's file; empty where it cannot be written as one."""
    try:
        from gradspec._audit._saved_call import CallError, save_call
    except ImportError:  # no safetensors: the calls are in this process only
        return ""
    try:
        save_call(path, args, kwargs, of=key)
    except CallError:
        return ""
    return str(path)


def _write(path: Path, data: Any) -> None:
    """Replace a file, all or nothing."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data), encoding="utf-8")
    part.replace(path)
