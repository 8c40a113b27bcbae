"""Where a page and its record disagree: what fails a build that runs with `-W`."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.findings import Bar, judge
from gradspec.law import Status
from gradspec.render import words
from gradspec.sphinx_ext._warnings import GradspecWarning
from gradspec.sphinx_ext.page._defaults import wrong_defaults
from gradspec.sphinx_ext.page._differences import unfounded
from gradspec.sphinx_ext.page._view import View


def divergences(view: View, bar: Bar) -> Iterator[tuple[GradspecWarning, str]]:
    """Yield the warnings of a function's page: each names the function and the law. `bar` says what is a failure."""
    report = view.record.report
    yield from _stale(view)
    for verdict in judge(report, bar).failures:
        if verdict.spec == view.name:
            message = f": {verdict.finding.message}" if verdict.finding.message else ""
            again = f" (again: {verdict.rerun})" if verdict.rerun else ""
            yield (
                GradspecWarning.BROKEN,
                f"{view.call}: law {verdict.law} {_verb(verdict.status)} on case {verdict.case!r}{message}{again}",
            )
    for verdict in view.verdicts("examples"):
        for example in verdict.finding.details.get("examples", ()):
            want, got = example["want"].strip(), example["got"].strip()
            if want != got and "..." not in want:
                yield (
                    GradspecWarning.EXAMPLE,
                    f"{verdict.case}: the example {example['source'].strip()!r} says {want!r} and printed {got!r}",
                )
    for message in wrong_defaults(view.sheet):
        yield GradspecWarning.DEFAULT, f"{view.call}: {message}"
    for message in unfounded(view):
        yield GradspecWarning.DIFFERENCE, f"{view.call}: {message}"


def _stale(view: View) -> Iterator[tuple[GradspecWarning, str]]:
    if not view.record.report.of(spec=view.name):
        yield GradspecWarning.RECORD, f"{view.call}: the record {view.record.path} holds no verdict about it"
    changed = [name for name in _stands_on(view) if name in view.record.changed]
    if missing := list(dict.fromkeys(root for name in changed for root in view.record.missing.get(name, ()))):
        yield (
            GradspecWarning.STALE,
            f"{view.call}: {_few(missing)} is not found, so that nobody can tell whether the source has changed since "
            f"{view.record.path} was made: add its folder to sys.path in conf.py, or install it",
        )
    elif changed:
        yield (
            GradspecWarning.STALE,
            f"{view.call}: the source of {_few(changed)} has changed since {view.record.path} was made: "
            "run `gradspec check` again",
        )


def _stands_on(view: View) -> Iterator[str]:
    """Yield the names of the sources of a function's verdicts."""
    laws = view.record.report.laws
    yield f"spec {view.name}"
    required = (name for law in laws.values() for name in law.get("requires", ()))
    yield from dict.fromkeys(f"law {name}" for name in (*laws, *required))


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _verb(status: Status) -> str:
    return {Status.BROKEN: "is broken", Status.ERROR: "got an error"}.get(status, f"is {words(status)}")
