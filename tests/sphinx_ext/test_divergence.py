"""Where page and record disagree the build fails, names the law, the function and the page, and fails again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gradspec.law import Finding, Status
from gradspec.report import Report, write_record
from gradspec.sphinx_ext import _config
from sphinx_ext.handmade import Built, Project, breaking, edited, older, report, source_of, verdict


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
    return replace(report, sources={"spec scale": older(report.sources["spec scale"])})


def write_docstring(project: Project) -> str:
    """Change a docstring of the documented module alone; return what the module held before."""
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8")
    demo.write_text(text.replace('"""Return x."""', '"""Return x as it is."""'), encoding="utf-8")
    return text


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
        (stale, "stale", ("index.md:3:", "spec scale", "has changed", "gradspec check demo --record ")),
        (undocumented, "undocumented", ("function 'other'", "gradspec-function:: other")),
    ],
    ids=["broken", "error", "inconclusive", "example", "stale", "undocumented"],
)
def test_a_divergence_fails_the_build_twice(
    project: Project, change: Callable[[Report], Report], subtype: str, words: tuple[str, ...]
) -> None:
    project.write(change(report(project)))
    fails_twice(project, subtype, *words)


def test_one_cause_is_one_warning_that_names_what_follows(project: Project) -> None:
    made = breaking(report(project))
    more = verdict("vjp", "factor 3", made.verdicts[-1].finding)
    follows = Finding(status=Status.BROKEN, message="follows from vjp", follows="vjp")
    followers = tuple(verdict(law, case, follows) for law in ("jvp", "compile") for case in ("factor 2", "factor 3"))
    other = verdict("formula", "factor 3", Finding(status=Status.BROKEN, message="another formula"))
    project.write(replace(made, verdicts=(*made.verdicts, more, *followers, other)))
    built = project.build("-b", "dummy")
    first, second = sorted((line for line in built.warnings if "[gradspec.broken]" in line), reverse=True)
    assert "law vjp is broken on case 'factor 2' and 1 more: off by a sign (again: gradspec check vjp; " in first
    assert "of the same cause: jvp, compile)" in first
    assert "law formula is broken on case 'factor 3': another formula (again: gradspec check formula)" in second
    assert built.returncode == 1


def test_what_a_failure_is_is_what_the_options_say(project: Project) -> None:
    file = Path(_config.__file__)
    text = file.read_text(encoding="utf-8")
    words = re.compile(r"#: Records made for this build, [^#]* A failure in one of them is an? (\w+)\.$", re.MULTILINE)
    said = words.search(text)
    assert said, f"{file.name} no longer says what a failure in a record is: teach this test"
    project.write(breaking(report(project)))
    (level,) = {
        one for line in project.build("-b", "dummy").warnings for one in re.findall(r": (WARNING|ERROR): ", line)
    }
    where = f"{file.name}:{text.count(chr(10), 0, said.start()) + 1}"
    assert said[1] == level.lower(), f"{where}: it says {said[1]}, and a failure is a {level.lower()}"


def test_a_law_that_breaks_after_a_good_build_fails_the_next_one(project: Project) -> None:
    assert project.build().returncode == 0
    project.write(breaking(report(project)))
    fails_twice(project, "broken", "law vjp is broken")
    project.write(report(project))
    assert project.build().returncode == 0


def test_a_module_that_is_not_found_is_not_said_to_have_changed(project: Project) -> None:
    made = report(project)
    elsewhere = replace(made.sources["spec scale"], roots=("nowhere.ops",))
    project.write(replace(made, sources={"spec scale": elsewhere}))
    fails_twice(project, "stale", "nowhere.ops is not found", "add its folder to sys.path in conf.py, or install it")


def test_an_edit_of_the_source_makes_the_record_stale(project: Project) -> None:
    assert project.build().returncode == 0
    demo = project.source / "demo.py"
    text = write_docstring(project)
    fails_twice(project, "stale", "the source of spec scale has changed")
    demo.write_text(text.replace("f=1.0", "f=2.0"), encoding="utf-8")
    fails_twice(project, "stale", "the source of spec scale has changed")


@pytest.mark.parametrize("name", ["law vjp", "law primal"])
def test_a_law_and_one_that_it_requires_make_the_record_stale(project: Project, name: str) -> None:
    made = report(project)
    laws = {**made.laws, "vjp": {**made.laws["vjp"], "requires": ["primal"]}}
    old = older(made.sources["spec scale"])
    project.write(replace(made, laws=laws, sources={**made.sources, name: old}))
    fails_twice(project, "stale", "index.md:3:", f"the source of {name} has changed")


def test_the_record_of_an_interrupted_run_fails_the_build_twice(project: Project) -> None:
    project.write(replace(report(project), missing=(("scale", "vjp", "another case"),)))
    fails_twice(
        project, "record", str(project.record), "1 of the cells that were asked for are not measured", "run the command"
    )


def test_a_verdict_that_was_edited_by_hand_is_refused(project: Project) -> None:
    project.write(breaking(report(project)))
    edited(project.record, lambda data: data["verdicts"][-1].update(status="holds", message=""))
    fails_twice(project, "record", str(project.record), "has been edited since it was measured")


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
    edited(project.record, lambda data: data.update(schema=99))
    fails_twice(project, "record", "schema version 99", "make it again")


def test_a_function_that_the_record_does_not_hold(project: Project) -> None:
    project.write(replace(report(project), sheets={}))
    fails_twice(project, "unknown", "index.md:3:", "'scale'", "it holds: nothing")


def test_a_class_that_cannot_be_imported(project: Project) -> None:
    made = report(project)
    sheet = {**made.sheets["scale"], "documented": ["demo.Missing"]}
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
    old = {"spec pub.Scale": older(source_of(project.source / "demo.py"))}
    write_record(replace(peers(project, Status.HOLDS), sources=old), project.source / "peers.json")
    assert project.build().warnings == []


def test_a_difference_that_names_no_case_fails_the_build_twice(project: Project) -> None:
    made = report(project)
    (difference,) = made.sheets["scale"]["differences"]
    sheet = {**made.sheets["scale"], "differences": [{**difference, "case": "factor 3"}]}
    project.write(replace(made, sheets={"scale": sheet}))
    fails_twice(project, "difference", "index.md:3:", "names the case 'factor 3' of the law vjp", "no such case")


@pytest.mark.parametrize(
    ("sentence", "message", "said"),
    [
        ("`vmap` raises.", "values differ", "law vjp on case 'factor 2' found no error: values differ"),
        (
            "Drops it, silently.",
            "raised LookupError: x",
            "law vjp on case 'factor 2' found an error: raised LookupError: x",
        ),
        ("`vmap` raises.", "a call raised LookupError: x", ""),
        ("Drops it, silently.", "values differ", ""),
        ("A pass that raises moves the bank.", "values differ", ""),
    ],
)
def test_the_sentence_of_a_difference_fits_what_was_recorded(
    project: Project, sentence: str, message: str, said: str
) -> None:
    made = report(project)
    (difference,) = made.sheets["scale"]["differences"]
    sheet = {**made.sheets["scale"], "differences": [{**difference, "published": sentence}]}
    project.write(replace(made, sheets={"scale": sheet}))
    found = peers(project, Status.BROKEN)
    broken = verdict("vjp", "factor 2", Finding(status=Status.BROKEN, message=message), spec="pub.Scale")
    write_record(replace(found, verdicts=(broken,)), project.source / "peers.json")
    if said:
        fails_twice(project, "difference", "index.md:3:", f"{sentence!r} is said of pub.Scale", said)
    else:
        assert project.build().warnings == []
