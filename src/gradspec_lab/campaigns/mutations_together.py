"""Many changes at once: all tests are asked of all of them, and each failure is traced to its change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from gradspec_lab.campaigns.mutation_tests import NO_TEST, OUTDATED, Change, Suite, edited, failing, together

#: How long all tests may take, in seconds.
LONG = 7200
#: Of the files of tests, those that make edits themselves, and those of the built site.
LEFT_OUT = ("tests/drift/", "tests/site/", "tests/browser/")


def noticed_together(folder: Path, changes: Mapping[int, Change], suite: Suite, jobs: int) -> Iterator[tuple[int, str]]:
    """Make many changes at once, ask all tests, and yield whose change each failure is: its key, and the test.

    A change may hide another one: what is noticed is taken back, and all are asked again until none fails.

    Raises:
        RuntimeError: the tests do not end, or end before their first.
    """
    files = [file for file in suite.files if not file.startswith(LEFT_OUT)]
    side_by_side = ("-n", str(jobs), "--dist", "worksteal")
    excused = set[str]()
    left, later = dict[int, Change](), dict(changes)
    while left or later:
        for name, change in list(later.items()):
            if not any(change.overlaps(other) for other in left.values()):
                left[name] = later.pop(name)
        texts = together(folder, left.values())
        with edited(folder, texts):
            said = failing(folder, files, *side_by_side, *(f"--deselect={name}" for name in excused), seconds=LONG)
        if ended := next((name for name in said if name.startswith(NO_TEST)), None):
            raise RuntimeError(f"all tests together: {ended.removeprefix(NO_TEST)}")
        failed = [name for name, text in said.items() if not OUTDATED.search(text)]
        excused |= {*said} - {*failed}
        without = failing(folder, failed, seconds=LONG) if failed else {}
        excused |= {*without}
        failed = [name for name in failed if name not in without]
        if not failed:
            left = {}  # all that is left of these has been asked of everything
        while failed:
            test = failed[0]
            if (key := _culprit(folder, test, left, suite)) is None:  # it fails of several at once, or by chance
                excused.add(test)
                failed = failed[1:]
                continue
            yield key, test
            del left[key]
            with edited(folder, together(folder, left.values())):
                still = failing(folder, failed, seconds=LONG)
            failed = [name for name in failed if name in still]


def _culprit(folder: Path, test: str, changes: Mapping[int, Change], suite: Suite) -> int | None:
    """Return the key of a change that makes a test fail alone; None where there is none."""

    def fails(keys: list[int]) -> bool:
        with edited(folder, together(folder, (changes[key] for key in keys))):
            return bool(failing(folder, [test]))

    running = [key for key, change in changes.items() if suite.runs(test.partition("::")[0], change)]
    keys = running if running and fails(running) else list(changes)
    while len(keys) > 1:
        halves = keys[: len(keys) // 2], keys[len(keys) // 2 :]
        failing_half = next((half for half in halves if fails(half)), None)
        if failing_half is None:
            return None
        keys = failing_half
    return keys[0] if keys and fails(keys) else None
