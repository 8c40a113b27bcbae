"""Recorded benchmarks and published implementations on a page: every number is the record's, and none is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from gradspec.law import Finding, Rank, Status
from gradspec.report import read_record, write_record
from sphinx_ext.handmade import Built, Project, copied, edited, report, resealed, source_of, verdict

PEER = "espnet2.encoder.GradMultiply"


def prepared(folder: Path, **provenance: Any) -> Project:
    """Return the mini-project, with a record of a published class that breaks `vjp` on one of two cases."""
    project = copied("test-benchmark", folder)
    made = report(copied("test-function", folder / "other"))
    source = source_of(project.source / "conf.py")
    bad = Finding(status=Status.BROKEN, message="off by a sign")
    verdicts = (
        verdict("vjp", "one", bad, PEER),
        verdict("vjp", "two", None, PEER),
        verdict("formula", "one", None, PEER),
    )
    write_record(
        replace(
            made,
            provenance={**made.provenance, "packages": {"espnet": "202511"}, **provenance},
            sheets={PEER: made.sheets["scale"]},
            sources={f"spec {PEER}": source},
            verdicts=verdicts,
        ),
        project.source / "peers.json",
    )
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = prepared(tmp_path_factory.mktemp("benchmark")).build()
    assert (made.returncode, made.warnings) == (0, [])
    return made


def loops(project: Project) -> Path:
    return project.source / "benchmarks" / "loops.json"


def tables(built: Built) -> list[list[list[str]]]:
    soup = BeautifulSoup(built.html(), "html.parser")
    return [
        [[cell.get_text(" ", strip=True) for cell in row.find_all(["td", "th"])] for row in table.find_all("tr")]
        for table in soup.find_all("table")
    ]


def test_every_number_of_a_benchmark_is_in_a_table(built: Built) -> None:
    _, alike, alone = tables(built)
    assert alike == [
        ["shape", "2 x 3", "4 x 5"],
        ["median ms, ours", "25.78", "1.5"],
        ["median ms, theirs", "12,345", "3"],
        ["ours / theirs, median (quartiles)", "0.5 (0.25 to 0.75)", "0.625 (0.6 to 0.65)"],
    ]
    assert alone == [["rows", "7"], ["extra bytes", "1,048,576"]]


def test_a_benchmark_says_where_and_when_and_under_which_load(built: Built) -> None:
    page = built.html()
    assert "Measured on 2026-01-02 03:04 UTC: torch 2.13.0, device an abacus, load average 7.25, 6.5." in page
    assert "In all of them: dtype float32." in page
    assert ">Two loops<" in page


def test_a_published_class_stands_with_its_package_and_what_it_breaks(built: Built) -> None:
    head, row = tables(built)[0]
    assert head[:2] == ["Published class", "Laws that it breaks, with the number of cases"]
    assert row == [f"espnet 202511 {PEER}", "Wrong silently: vjp (1)", "✓ holds 1"]


def test_the_laws_that_a_published_class_breaks_are_ranked(tmp_path: Path) -> None:
    project = prepared(tmp_path)
    record = read_record(project.source / "peers.json")
    refused = verdict("wrong_call", "one", Finding(status=Status.BROKEN, message="raised", rank=Rank.REFUSED), PEER)
    after = verdict("examples", "one", Finding(status=Status.BROKEN, message="follows", follows="vjp"), PEER)
    write_record(replace(record, verdicts=(after, refused, *record.verdicts)), project.source / "peers.json")
    row = tables(project.build())[0][1]
    assert row[1] == ("Wrong silently: vjp (1) Refused with an error: wrong_call (1) Follows from these: examples (1)")


def test_a_folded_benchmark_is_behind_its_title_and_loses_no_number(project: Project) -> None:
    page = project.source / "index.md"
    directive = "{gradspec-benchmark} benchmarks/*.json\n"
    text = page.read_text(encoding="utf-8")
    assert directive in text
    page.write_text(text.replace(directive, f"{directive}:folded:\n"), encoding="utf-8")
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    (fold,) = BeautifulSoup(built.html(), "html.parser").select("details#benchmark-two_loops, details")
    assert fold.summary.get_text() == "Every number: two loops"
    assert len(fold.find_all("table")) == 2
    assert "12,345" in fold.get_text()


def test_a_benchmark_that_was_edited_by_hand_is_refused(project: Project) -> None:
    edited(loops(project), lambda record: record["measurements"][0]["median_ms"].update(ours=1.0))
    for _ in range(2):
        built = project.build()
        assert built.returncode == 1
        (line,) = [line for line in built.warnings if "[gradspec.record]" in line]
        assert "index.md:8:" in line
        assert "loops.json has been edited since it was measured" in line
    assert "not measured" in built.html()
    assert "two_loops" not in built.html()


def test_a_missing_record_is_a_warning_and_stays_one(project: Project) -> None:
    loops(project).unlink()
    for _ in range(2):
        made = project.build()
        assert made.returncode == 1
        assert [line for line in made.warnings if "there is no record" in line and "[gradspec.record]" in line]


def test_two_numbers_of_one_name_are_a_warning(project: Project) -> None:
    peaks = [{"peak": 1}, {"peak": 2}]
    resealed(loops(project), lambda record: record["measurements"][2].update(extra_bytes=peaks))
    made = project.build()
    assert [line for line in made.warnings if "two values are called 'extra bytes, peak'" in line]


def test_no_published_implementation_is_a_warning(project: Project) -> None:
    (project.source / "peers.json").unlink()
    made = project.build()
    assert made.returncode == 1
    assert [line for line in made.warnings if "make one" in line and "[gradspec.record]" in line]
