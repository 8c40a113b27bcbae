"""Where page and record disagree the build fails, names the law, the function and the page, and fails again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from gradspec.law import Finding, Status
from gradspec.report import Report, Source, write_record
from sphinx_ext.handmade import Built, Project, breaking, report, verdict


def test_a_record_in_which_all_holds_builds_twice_in_silence(project: Project) -> None:
    for _ in range(2):
        built = project.build()
        assert (built.returncode, built.warnings) == (0, [])


def fails_twice(project: Project, subtype: str, *words: str) -> None:
    for attempt in ("first build", "incremental build"):
        built = project.build("-b", "dummy")  # reads, and writes no page
        assert built.returncode == 1, attempt
        (line,) = [warning for warning in built.warnings if f"[gradspec.{subtype}]" in warning]
        assert all(word in line for word in words), line
        assert "Traceback" not in "".join(built.warnings)


def example(report: Report) -> Report:
    details = {"examples": [{"source": "Scale.apply(2.0, 3.0)\n", "want": "2.0\n", "got": "6.0\n"}]}
    kept = tuple(v for v in report.verdicts if v.law != "examples")
    return replace(
        report, verdicts=(*kept, verdict("examples", "demo.Scale", Finding(status=Status.HOLDS, details=details)))
    )


def stale(report: Report) -> Report:
    source = report.sources["spec scale"]
    return replace(report, sources={"spec scale": Source(package="", files=source.files, hash="another")})


def undocumented(report: Report) -> Report:
    return replace(report, sheets={**report.sheets, "other": report.sheets["scale"]})


def with_status(status: Status) -> Callable[[Report], Report]:
    def change(report: Report) -> Report:
        bad = verdict("vjp", "factor 2", Finding(status=status, message="why"))
        return replace(report, verdicts=(*report.verdicts, bad))

    return change


@pytest.mark.parametrize(
    ("change", "subtype", "words"),
    [
        (breaking, "broken", ("index.md:3:", "Scale.apply", "law vjp is broken", "'factor 2'", "off by a sign")),
        (with_status(Status.ERROR), "broken", ("law vjp got an error", "why")),
        (with_status(Status.INCONCLUSIVE), "broken", ("law vjp is inconclusive",)),
        (example, "example", ("index.md:3:", "demo.Scale", "says '2.0' and printed '6.0'")),
        (stale, "stale", ("index.md:3:", "spec scale", "has changed")),
        (undocumented, "undocumented", ("function 'other'", "gradspec-function:: other")),
    ],
    ids=["broken", "error", "inconclusive", "example", "stale", "undocumented"],
)
def test_a_divergence_fails_the_build_twice(
    project: Project, change: Callable[[Report], Report], subtype: str, words: tuple[str, ...]
) -> None:
    project.write(change(report(project)))
    fails_twice(project, subtype, *words)


def test_a_law_that_breaks_after_a_good_build_fails_the_next_one(project: Project) -> None:
    assert project.build().returncode == 0
    project.write(breaking(report(project)))
    fails_twice(project, "broken", "law vjp is broken")
    project.write(report(project))
    assert project.build().returncode == 0


def test_an_edit_of_the_source_makes_the_record_stale(project: Project) -> None:
    assert project.build().returncode == 0
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8")
    demo.write_text(text.replace('"""Return x."""', '"""Return x as it is."""'), encoding="utf-8")
    assert project.build().returncode == 0, "a docstring is no source"
    demo.write_text(text.replace("f=1.0", "f=2.0"), encoding="utf-8")
    fails_twice(project, "stale", "spec scale")


def test_a_source_that_cannot_be_parsed_makes_the_record_stale(project: Project) -> None:
    (project.source / "demo.py").write_text("def scale(:\n", encoding="utf-8")
    built = project.build("-b", "dummy")
    assert built.returncode == 1, "2 is a crash"
    assert len(only(built, "stale")) == 1
    (line,) = only(built, "import")
    assert "demo.Scale cannot be imported: SyntaxError" in line


def test_a_missing_record_is_named_and_so_is_the_page(project: Project) -> None:
    project.record.unlink()
    fails_twice(project, "record", str(project.record), "gradspec check TARGET --record")
    fails_twice(project, "unknown", "index.md:3:", "'scale'")
    assert "Not measured" in project.build().html()


def test_a_record_of_another_schema_is_one_line(project: Project) -> None:
    data = json.loads(project.record.read_text(encoding="utf-8"))
    project.record.write_text(json.dumps({**data, "schema": 99}), encoding="utf-8")
    fails_twice(project, "record", "schema version 99", "make it again")


def test_a_function_that_the_record_does_not_hold(project: Project) -> None:
    project.write(replace(report(project), sheets={}))
    fails_twice(project, "unknown", "index.md:3:", "'scale'", "it holds: nothing")


def test_a_class_that_cannot_be_imported(project: Project) -> None:
    made = report(project)
    sheet = {**made.sheets["scale"], "documents": ["demo.Missing"]}
    project.write(replace(made, sheets={"scale": sheet}))
    (line,) = only(project.build(), "import")
    assert "demo.Missing cannot be imported: ImportError" in line


def test_a_type_of_warning_can_be_suppressed(project: Project) -> None:
    project.write(breaking(report(project)))
    assert project.build("-D", "suppress_warnings=gradspec.broken").returncode == 0


def only(built: Built, subtype: str) -> list[str]:
    assert built.returncode == 1
    return [line for line in built.warnings if f"[gradspec.{subtype}]" in line]


def peers(project: Project, status: Status) -> Report:
    """Return a record of the published class that the page's difference names."""
    found = verdict("vjp", "factor 2", Finding(status=status), spec="pub.Scale")
    made = report(project)
    return replace(made, sheets={"pub.Scale": made.sheets["scale"]}, sources={}, verdicts=(found,))


@pytest.mark.parametrize("status", [Status.HOLDS, Status.REFUSED_AS_DECLARED])
def test_a_difference_that_no_longer_differs_fails_the_build_twice(project: Project, status: Status) -> None:
    write_record(peers(project, status), project.source / "peers.json")
    fails_twice(project, "difference", "index.md:3:", "pub.Scale no longer differs", "law vjp", "'factor 2'")


def test_a_difference_that_still_differs_is_no_warning(project: Project) -> None:
    write_record(peers(project, Status.BROKEN), project.source / "peers.json")
    assert project.build().warnings == []


def test_a_record_that_nobody_has_made_yet_does_not_make_a_page_anew(project: Project) -> None:
    page = project.build().folder / "index.html"
    made = page.stat().st_mtime_ns
    project.build()
    assert page.stat().st_mtime_ns == made
    write_record(peers(project, Status.BROKEN), project.source / "peers.json")
    project.build()
    assert page.stat().st_mtime_ns > made
    assert "broken" in page.read_text(encoding="utf-8")


def test_an_old_record_says_nothing_of_a_difference(project: Project) -> None:
    old = {"spec pub.Scale": Source(package="", files=(str(project.source / "demo.py"),), hash="another")}
    write_record(replace(peers(project, Status.HOLDS), sources=old), project.source / "peers.json")
    assert project.build().warnings == []


def test_a_difference_that_names_no_case_fails_the_build_twice(project: Project) -> None:
    made = report(project)
    (difference,) = made.sheets["scale"]["differences"]
    sheet = {**made.sheets["scale"], "differences": [{**difference, "case": "factor 3"}]}
    project.write(replace(made, sheets={"scale": sheet}))
    fails_twice(project, "difference", "index.md:3:", "names the case 'factor 3' of the law vjp", "no such case")
