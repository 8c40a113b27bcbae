"""Where a page and its record disagree: what fails a build that runs with `-W`."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.findings import Bar, Found, judge
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
    for judged in judge(report, bar).findings:
        if judged.fails and judged.found.verdict.spec == view.name:
            yield GradspecWarning.BROKEN, f"{view.call}: {_cause(judged.found)}"
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


def _cause(found: Found) -> str:
    """Return one cause in a sentence: the verdict that shows it best, and how many others it explains."""
    best = found.verdict
    message = f": {best.finding.message}" if best.finding.message else ""
    cases = list(dict.fromkeys(verdict.case for verdict in found.verdicts if verdict.law == best.law))
    others = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    said = [f"again: {best.rerun}"] if best.rerun else []
    if laws := [law for law in dict.fromkeys((*found.laws, *found.follows)) if law != best.law]:
        said.append(f"of the same cause: {', '.join(laws)}")
    more = f" ({'; '.join(said)})" if said else ""
    return f"law {best.law} {_verb(best.status)} on case {best.case!r}{others}{message}{more}"


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
            f"run `{_again(view)}` again",
        )


def _again(view: View) -> str:
    """Return the command that makes the record, as far as the sheet says it."""
    module = view.sheet["path"].partition(":")[0]
    return f"gradspec check {module} --record {view.record.path}" if module else "gradspec check"


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
