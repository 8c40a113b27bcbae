"""Change single lines of the package at random, and see whether a test notices.

`python -m gradspec_lab.campaigns.mutations --count 200` asks, for each change, the tests that run the line and are most
about its file, as `nox -s lab -- coverage` has found them in `.coverage`; then all tests, of all changes that none of
these notices, made together. A second call goes on with what the first found. `--record docs/records/mutations.json`
writes what a page says of it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from gradspec._record import write_experiment
from gradspec_lab.campaigns.mutation_tests import AT_ONCE, PACKAGE, ROOT, Change, Suite, noticed, statement, together
from gradspec_lab.campaigns.mutations_together import noticed_together
from gradspec_lab.campaigns.random_edits import RandomEdit, edits_in

#: Edits that change no line that is run.
NOT_RUN = ("a docstring", "an annotation")


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


@cache
def edits() -> list[tuple[Path, RandomEdit]]:
    """Return each edit of a line that is run of each file of the package."""
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    return [(file, edit) for file in files for edit in edits_in(file.read_text("utf-8")) if edit.what not in NOT_RUN]


def drawn(seed: int) -> tuple[Path, RandomEdit]:
    """Return a file of the package and one edit of it: each edit of each file is as likely."""
    return random.Random(seed).choice(edits())


def changed(seed: int) -> Change:
    """Return the change of a seed."""
    path, edit = drawn(seed)
    return Change(str(path.relative_to(ROOT / PACKAGE)), edit, statement(path.read_text("utf-8"), edit.line))


def trial(folder: Path, seed: int, suite: Suite) -> Mutation:
    """Make one edit below a folder, and ask the tests that are most about it."""
    change = changed(seed)
    texts = together(folder, [change])
    line = change.edit.line
    original = (folder / PACKAGE / change.file).read_text("utf-8")
    old, new = (text.splitlines()[line - 1].strip() for text in (original, texts[change.file]))
    made = Mutation(change.file, line, change.edit.what, old, new, len(suite.running_any(change.file, change.lines)))
    began, asked = time.monotonic(), suite.asked(change.file, change.lines)
    for at in range(0, len(asked), AT_ONCE):
        if name := noticed(folder, texts, asked[at : at + AT_ONCE]):
            made.noticed = name
            break
    made.seconds = round(time.monotonic() - began, 1)
    return made


def trials(seeds: list[int], suite: Suite, folders: list[Path]) -> Iterator[tuple[int, Mutation]]:
    """Yield what came of each seed, in the order in which they end."""
    free = SimpleQueue[Path]()
    for folder in folders:
        free.put(folder)

    def one(seed: int) -> tuple[int, Mutation]:
        folder = free.get()
        try:
            return seed, trial(folder, seed, suite)
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
    parser.add_argument(
        "--coverage", type=Path, default=ROOT / ".coverage", help="the data of `nox -s lab -- coverage`"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutations", help="where copies are made")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutations.json", help="where to write the rows")
    parser.add_argument("--record", type=Path, help="where to write the record")
    options = parser.parse_args()
    suite = Suite.read(options.coverage)
    rows: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.is_file() else {}
    shutil.rmtree(options.work, ignore_errors=True)
    folders = [copied(options.work / str(k)) for k in range(options.jobs)]
    seeds = range(options.seed, options.seed + options.count)

    def save() -> None:
        options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False), "utf-8")

    for seed, made in trials([seed for seed in seeds if str(seed) not in rows], suite, folders):
        rows[str(seed)] = asdict(made)
        save()
        said = made.noticed or "not noticed by these"
        print(f"{seed}: {made.file}:{made.line}: {made.what}: {said} ({made.seconds} s)", flush=True)
    left = {int(seed): changed(int(seed)) for seed, row in rows.items() if is_open(row)}
    if moved := [seed for seed, change in left.items() if change.file != rows[str(seed)]["file"]]:
        sys.exit(f"{options.out} has changes of another source, such as that of seed {moved[0]}: start anew")
    print(f"all tests are asked of {len(left)} together", flush=True)
    for seed, test in noticed_together(folders[0], left, suite, options.jobs):
        rows[str(seed)] |= {"noticed": test, "asked_all": True}
        save()
        print(f"{seed}: {test}", flush=True)
    for seed in left:
        rows[str(seed)]["asked_all"] = True
    save()
    found = counted(rows.values())
    print(f"{found['noticed']} of {found['changes']} changes are noticed")
    if options.record:
        what = "how many random changes of single lines of the package a test notices"
        found["missed"] = [{key: row[key] for key in ("file", "line", "what")} for row in found["missed"]]
        command = f"python -m gradspec_lab.campaigns.mutations --count {len(rows)} --record {options.record}"
        write_experiment({"name": "mutations", "what": what, **found}, options.record, command=command)


if __name__ == "__main__":
    main()
