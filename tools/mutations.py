"""Change single lines of the package at random, and see whether a test notices.

`python tools/mutations.py --count 200` asks, for each change, the tests that run the line and are most about its file,
as `nox -s coverage` has found them in `.coverage`; then, where none of them notices it, all others that run it, and
those that coverage does not follow. A second call goes on with what the first found.
`--record docs/records/mutations.json` writes what a page says of it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from gradspec._record import write_experiment
from random_edits import RandomEdit, edits_in

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/gradspec/"
#: Wrong on purpose: that no test notices another mistake in one is no news.
LEFT_OUT = ("selftest/specimens/",)
#: Edits that change no line that is run.
NOT_RUN = ("a docstring", "an annotation")
#: What a test says of a committed record after any edit of what it stands on; that is no notice of a mistake.
OUTDATED = re.compile(r"stale|nox -s records|another source")
#: What then stands before its name.
STALE = "stale: "
#: How a run ended that names no test.
NO_TEST = ("exit code ", "no end ")
#: A test that failed, in pytest's summary.
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
#: How many files of tests one process of pytest runs.
AT_ONCE = 6
#: How many are asked at first; the others only of a change that none of these notices.
MOST = 12
SECONDS = 900


@dataclass
class Mutation:
    """One change of a line, and the test that noticed it: "" where none did.

    Attributes:
        file: relative to the package.
        line: where.
        what: which kind of edit.
        old: the line as it was.
        new: the line as it is then.
        tests: how many files of tests run the line.
        noticed: the first test that failed.
        asked_all: whether all tests were asked, and not only those that are most about the file.
        seconds: how long that took.
    """

    file: str
    line: int
    what: str
    old: str
    new: str
    tests: int
    noticed: str = ""
    asked_all: bool = False
    seconds: float = 0.0


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
            raise ValueError(f"{data} does not say which tests run a line: run `nox -s coverage` first")
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

    def asked(self, file: str, lines: range) -> tuple[list[str], list[str]]:
        """Return the tests that run some lines and are most about their file, and all others that may notice."""
        about = Counter[str]()
        for tests in self.running.get(
            file, {}
        ).values():  # a line that every test runs, as it is imported, says nothing
            about.update(dict.fromkeys(tests, 1 / len(tests)))
        # What runs little else is quick, and is there for this file.
        ordered = sorted(self.running_any(file, lines), key=lambda test: (-about[test] / self.lines[test], test))
        rest = [test for test in self.files if test not in self.lines and "/drift/" not in test]
        return ordered[:MOST], [*ordered[MOST:], *rest]


@cache
def edits() -> list[tuple[Path, RandomEdit]]:
    """Return each edit of a line that is run of each file of the package."""
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    files = [file for file in files if not str(file.relative_to(ROOT / PACKAGE)).startswith(LEFT_OUT)]
    return [(file, edit) for file in files for edit in edits_in(file.read_text("utf-8")) if edit.what not in NOT_RUN]


def drawn(seed: int) -> tuple[Path, RandomEdit]:
    """Return a file of the package and one edit of it: each edit of each file is as likely."""
    return random.Random(seed).choice(edits())


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


def failing(folder: Path, tests: list[str], without: Iterable[str] = ()) -> str:
    """Return the first test that fails below a folder, some left out; "" where none does."""
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    words = [sys.executable, "-m", "pytest", *options, *(f"--deselect={name}" for name in without), *tests]
    how: dict[str, Any] = {"cwd": folder, "env": env, "capture_output": True, "text": True, "timeout": SECONDS}
    try:
        done = subprocess.run(words, check=False, **how)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    if done.returncode in (0, 5):
        return ""
    failed = FAILED.search(done.stdout)
    said = failed[1] if failed else f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-200:]}"
    return f"{STALE}{said}" if OUTDATED.search(done.stdout) else said


def noticed(folder: Path, target: Path, edited: str, tests: list[str]) -> str:
    """Return the first test that fails because a file below a folder is edited; "" where none does.

    One that fails without the edit too, or that only calls a record stale, does not count.
    """
    original, without = target.read_text("utf-8"), list[str]()
    while True:
        target.write_text(edited, "utf-8")
        try:
            name = failing(folder, tests, without)
        finally:
            target.write_text(original, "utf-8")
        test = name.removeprefix(STALE)
        if not test or test.startswith(NO_TEST):
            return test
        if not name.startswith(STALE) and not failing(folder, [test]):
            return test
        without.append(test)


def trial(folder: Path, seed: int, suite: Suite, *, others: bool) -> Mutation:
    """Make one edit below a folder, and ask the tests that are most about it, or the others."""
    path, edit = drawn(seed)
    file, text = str(path.relative_to(ROOT / PACKAGE)), path.read_text("utf-8")
    lines, edited = statement(text, edit.line), edit.applied(text)
    old, new = (t.splitlines()[edit.line - 1].strip() for t in (text, edited))
    made = Mutation(file, edit.line, edit.what, old, new, len(suite.running_any(file, lines)), asked_all=others)
    began, asked = time.monotonic(), suite.asked(file, lines)[others]
    for at in range(0, len(asked), AT_ONCE):
        if name := noticed(folder, folder / PACKAGE / file, edited, asked[at : at + AT_ONCE]):
            made.noticed = name
            break
    made.seconds = round(time.monotonic() - began, 1)
    return made


def trials(seeds: list[int], suite: Suite, folders: list[Path], *, others: bool) -> Iterator[tuple[int, Mutation]]:
    """Yield what came of each seed, in the order in which they end."""
    free = SimpleQueue[Path]()
    for folder in folders:
        free.put(folder)

    def one(seed: int) -> tuple[int, Mutation]:
        folder = free.get()
        try:
            return seed, trial(folder, seed, suite, others=others)
        finally:
            free.put(folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        for future in as_completed([pool.submit(one, seed) for seed in seeds]):
            yield future.result()


def copied(folder: Path) -> Path:
    """Copy all files of the repository that git holds below a folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def is_open(row: Mapping[str, Any]) -> bool:
    """Whether tests are still to be asked of a change."""
    return not row["noticed"] and not row["asked_all"]


def counted(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return how many changes are noticed, by kind of edit, and those that are not."""
    made, seen = Counter[str](), Counter[str]()
    missed = []
    for row in rows:
        made[row["what"]] += 1
        if row["noticed"]:
            seen[row["what"]] += 1
        else:
            missed.append({key: row[key] for key in ("file", "line", "what", "old", "new", "tests")})
    by_edit = {what: {"changes": made[what], "noticed": seen[what]} for what in sorted(made)}
    return {"changes": made.total(), "noticed": seen.total(), "by_edit": by_edit, "missed": missed}


def main() -> None:
    """Change, ask, take back, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many changes")
    parser.add_argument("--seed", type=int, default=0, help="of the first change")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time; one per CPU")
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage", help="the data of `nox -s coverage`")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutations", help="where copies are made")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutations.json", help="where to write the rows")
    parser.add_argument("--record", type=Path, help="where to write the record")
    options = parser.parse_args()
    suite = Suite.read(options.coverage)
    rows: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.is_file() else {}
    shutil.rmtree(options.work, ignore_errors=True)
    folders = [copied(options.work / str(k)) for k in range(options.jobs)]
    seeds = range(options.seed, options.seed + options.count)
    for others in (False, True):
        left = [n for n in seeds if str(n) not in rows or (others and is_open(rows[str(n)]))]
        for seed, made in trials(left, suite, folders, others=others):
            rows[str(seed)] = asdict(made)
            options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False), "utf-8")
            said = made.noticed or "NOT NOTICED"
            print(f"{seed}: {made.file}:{made.line}: {made.what}: {said} ({made.seconds} s)", flush=True)
    found = counted(rows.values())
    print(f"{found['noticed']} of {found['changes']} changes are noticed")
    if options.record:
        what = "how many random changes of single lines of the package a test notices"
        rooms = sorted({edit[0].relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py") for edit in edits()})
        roots = ["gradspec" if room == "__init__" else f"gradspec.{room}" for room in rooms]
        command = f"python tools/mutations.py --count {len(rows)} --record {options.record}"
        write_experiment({"name": "mutations", "what": what, **found}, options.record, *roots, command=command)


if __name__ == "__main__":
    main()
