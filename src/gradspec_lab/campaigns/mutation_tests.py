"""Which tests run a line of the package, and which of them fails when the line is changed."""

from __future__ import annotations

import ast
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gradspec_lab.campaigns.random_edits import RandomEdit

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "src/gradspec/"
#: What a test says of a committed record after any edit of what it stands on; that is no notice of a mistake.
OUTDATED = re.compile(r"stale|nox -s records|another source")
#: How many are asked of one change by itself; the others of all changes that none of these notices, together.
MOST = 6
#: How many files of tests one process of pytest runs then.
AT_ONCE = 6
#: How long one process may take.
SECONDS = 300
#: Before how a process ended that names no test.
NO_TEST = "- "


@dataclass(frozen=True)
class Change:
    """An edit of a file of the package, and the lines of the statement that it changes."""

    file: str
    edit: RandomEdit
    lines: range

    def overlaps(self, other: Change) -> bool:
        """Whether the two cannot be made together."""
        return self.file == other.file and self.edit.start < other.edit.end and other.edit.start < self.edit.end


@dataclass
class Suite:
    """The files of tests, and which lines of the package each of them runs."""

    files: list[str]
    #: By file of the package: by line, the tests that run it.
    running: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    #: How many lines each of them runs.
    lines: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, data: Path) -> Suite:
        """Return the suite, and what the data of coverage say of it.

        Raises:
            ValueError: the data do not say which tests run a line.
        """
        suite = cls(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")))
        with closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as base:
            contexts = dict(base.execute("select id, context from context"))
            paths = dict(base.execute("select id, path from file"))
            for file, context, line in base.execute("select file_id, context_id, tono from arc where tono > 0"):
                suite._runs(paths[file], contexts[context], line)
        if not suite.running:
            raise ValueError(f"{data} does not say which tests run a line: run `nox -s lab -- coverage` first")
        return suite

    def _runs(self, path: str, context: str, line: int) -> None:
        if PACKAGE in path and context.startswith("tests/"):
            tests = self.running.setdefault(path.rpartition(PACKAGE)[2], {}).setdefault(line, set())
            self.lines[context] += context not in tests
            tests.add(context)

    def running_any(self, file: str, lines: range) -> set[str]:
        """Return the tests that run one of some lines."""
        by_line = self.running.get(file, {})
        return {test for line in lines for test in by_line.get(line, ())}

    def runs(self, file: str, change: Change) -> bool:
        """Whether a file of tests runs the statement that is changed."""
        return file in self.running_any(change.file, change.lines)

    def asked(self, file: str, lines: range) -> list[str]:
        """Return the files of tests that run some lines and are most about their file."""
        about = Counter[str]()
        for tests in self.running.get(file, {}).values():
            about.update(dict.fromkeys(tests, 1 / len(tests)))  # what runs as anything is imported says nothing
        # What runs little else is quick, and is there for this file.
        return sorted(self.running_any(file, lines), key=lambda test: (-about[test] / self.lines[test], test))[:MOST]


def statement(text: str, line: int) -> range:
    """Return the lines of the smallest statement that holds a line: coverage notes one of them."""
    found = range(line, line + 1)
    smallest = None
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno or node.lineno
            size = end - node.lineno
            if node.lineno <= line <= end and (smallest is None or size < smallest):
                smallest, found = size, range(node.lineno, end + 1)
    return found


def failing(folder: Path, tests: Sequence[str], *options: str, seconds: int = SECONDS) -> dict[str, str]:
    """Return what each test that fails below a folder says, by its name; a process that does not end has one, too."""
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as beside:
        report = Path(beside) / "report.xml"
        # The file of a test is in the first form of the report alone.
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}"]
        how: dict[str, Any] = {"cwd": folder, "env": env, "capture_output": True, "text": True, "timeout": seconds}
        try:
            done = subprocess.run([sys.executable, *words, *options, *tests], check=False, **how)
        except subprocess.TimeoutExpired:
            return {f"{NO_TEST}no end within {seconds} s": ""}
        if done.returncode in (0, 5):
            return {}
        printed = done.stdout + done.stderr
        if gone := [name for name in tests if f"not found: {folder / name.partition('[')[0]}\n" in printed]:
            # The name of a test may hold what is changed: without the change there is no such test.
            parts = [[name] for name in gone] if [*tests] != gone[:1] else []
            parts += [rest] if (rest := [name for name in tests if name not in gone]) else []
            asked = [failing(folder, part, *options, seconds=seconds) for part in parts]
            return {name: said for found in asked for name, said in found.items()}
        found = dict(_failures(report)) if report.is_file() else {}
        said = printed.strip()[-200:]
    return found or {f"{NO_TEST}exit code {done.returncode}: {said}": said}


def _failures(report: Path) -> Iterator[tuple[str, str]]:
    for case in ElementTree.parse(report).iter("testcase"):
        bad = next((bad for kind in ("failure", "error") for bad in case.iter(kind)), None)
        if bad is None:
            continue
        said, file = f"{bad.get('message')} {bad.text}", case.get("file", "")
        if bad.get("message") == "collection failure":
            yield file or f"{case.get('name', '').replace('.', '/')}.py", said
            continue
        module = file.removesuffix(".py").replace("/", ".")
        inside = case.get("classname", "").removeprefix(module).strip(".")
        yield "::".join(filter(None, (file, *inside.split("."), case.get("name")))), said


@contextmanager
def edited(folder: Path, texts: Mapping[str, str]) -> Iterator[None]:
    """Write other texts into files of the package below a folder, for a while."""
    originals = {file: (folder / PACKAGE / file).read_text("utf-8") for file in texts}
    try:
        for file, text in texts.items():
            (folder / PACKAGE / file).write_text(text, "utf-8")
        yield
    finally:
        for file, text in originals.items():
            (folder / PACKAGE / file).write_text(text, "utf-8")


def together(folder: Path, changes: Iterable[Change]) -> dict[str, str]:
    """Return the text of each file that is changed, with all changes of it."""
    texts = dict[str, str]()
    for change in sorted(changes, key=lambda change: -change.edit.start):
        text = texts.get(change.file) or (folder / PACKAGE / change.file).read_text("utf-8")
        texts[change.file] = change.edit.applied(text)
    return texts


def noticed(folder: Path, texts: Mapping[str, str], tests: list[str]) -> str:
    """Return the first test that fails because files of the package below a folder are edited; "" where none does.

    One that fails without the edit too, or that only calls a record stale, does not count.
    """
    without = list[str]()
    while True:
        with edited(folder, texts):
            failed = failing(folder, tests, "-x", *(f"--deselect={name}" for name in without))
        for name, said in failed.items():
            if name.startswith(NO_TEST) or not (OUTDATED.search(said) or failing(folder, [name])):
                return name.removeprefix(NO_TEST)
            without.append(name)
        if not failed:
            return ""
