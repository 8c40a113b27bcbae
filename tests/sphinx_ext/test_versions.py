"""The table of versions of torch: a row for each record, what differs between them, and what is not as promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from gradspec._record import provenance
from gradspec.report import write_experiment
from sphinx_ext.handmade import Project, copied, with_the_laboratory

PAGE = "# Versions\n\n```{gradspec-versions} versions\n```\n\n```{gradspec-versions} versions\n:transforms:\n```\n"
BROKEN = {"spec": "cube", "law": "vjp", "status": "broken", "message": "gradient of `x` differs"}


def record(torch: str, word: str, *otherwise: dict[str, Any], failed: int = 0) -> dict[str, Any]:
    return {
        "name": f"torch {torch}",
        "what": "a version",
        "provenance": {"torch": torch, "python": "3.11.7", "date": "2026-01-02 10:00 UTC"},
        "verdicts": {"counts": {"holds": 1200, "broken": len(otherwise)}, "otherwise": list(otherwise)},
        "specimens": {"sound": 23, "rejected": [], "diseased": 5, "missed": ["a: survived"]},
        "transforms": {"`func.jvp`": {"Plain": word, "Survives": "right"}},
        "tests": {"passed": 90 - failed, "skipped": 1, "failed": [f"test_{k}" for k in range(failed)]},
    }


QUESTIONS = "# Versions\n\n```{gradspec-versions} versions\n:questions:\n```\n"


def answers(torch: str, *otherwise: dict[str, str]) -> dict[str, Any]:
    return {
        "name": f"torch {torch}",
        "what": "pages",
        "provenance": {"torch": torch},
        "examples": {"autocast": 3, "lists": 4},
        "otherwise": list(otherwise),
    }


def built_of(folder: Path, *records: dict[str, Any], page: str = PAGE) -> tuple[Any, list[list[list[str]]]]:
    project: Project = with_the_laboratory(copied("test-function", folder))
    for number, content in enumerate(records):
        (project.source / "versions").mkdir(exist_ok=True)
        write_experiment(content, project.source / "versions" / f"{number}.json")
    (project.source / "versions.md").write_text(page, encoding="utf-8")
    with (project.source / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\nversions\n```\n")
    built = project.build()
    soup = BeautifulSoup(built.html("versions"), "html.parser")
    tables = [
        [[cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])] for row in table.find_all("tr")]
        for table in soup.find_all("table")
    ]
    return built, tables


def test_each_version_has_a_row_and_what_is_otherwise_is_said(tmp_path: Path) -> None:
    old = record("2.11.0+cpu", "raises", {**BROKEN, "cases": 2}, failed=3)
    built, (overview, otherwise, transforms) = built_of(tmp_path, old, record("2.13.0", "right"))
    assert built.warnings == []
    commit = str(provenance()["commit"])
    assert overview[1:] == [
        ["2.11.0", "3.11.7", f"2026-01-02, commit {commit}", "1,200", "2", "0 of 23", "4 of 5", "3 of 90"],
        ["2.13.0", "3.11.7", f"2026-01-02, commit {commit}", "1,200", "0", "0 of 23", "4 of 5", "0 of 90"],
    ]
    assert otherwise[1:] == [["2.11.0", "cube", "vjp", "2", "broken: gradient of x differs", "2.13.0"]]
    assert transforms == [
        ["transform", "class", "2.11.0", "2.13.0", "right since torch"],
        ["func.jvp", "Plain", "raises", "right", "2.13.0"],
    ]


def test_a_limit_is_lifted_by_the_first_version_from_which_on_it_holds(tmp_path: Path) -> None:
    one = {**BROKEN, "cases": 1}
    old, relapse = record("2.11.0", "raises", one), record("2.13.0", "dropped", one)
    between, last = record("2.12.1", "right"), record("2.14.1", "right")
    newest = record("2.15.0", "dropped", one)
    lifted, again = tmp_path / "lifted", tmp_path / "again"
    lifted.mkdir()
    again.mkdir()

    _, (_, otherwise, transforms) = built_of(lifted, old, between, relapse, last)
    assert [row[-1] for row in otherwise[1:]] == ["2.14.1", "2.14.1"]
    assert transforms[1] == ["func.jvp", "Plain", "raises", "right", "dropped", "right", "2.14.1"]
    _, (_, otherwise, transforms) = built_of(again, old, between, newest)
    assert [row[-1] for row in otherwise[1:]] == ["", ""]
    assert transforms[1][-1] == ""


def test_what_was_left_out_is_not_measured(tmp_path: Path) -> None:
    without = {name: value for name, value in record("2.13.0", "right").items() if name != "tests"}
    _, (overview,) = built_of(tmp_path, without)
    assert overview[1][-1].endswith("not measured")


def test_versions_that_agree_need_no_table(tmp_path: Path) -> None:
    built, tables = built_of(tmp_path, record("2.12.1", "right"), record("2.13.0", "right"))
    assert len(tables) == 1
    assert "It is the same under torch 2.12.1, 2.13.0." in built.html("versions")


def test_without_a_record_nothing_is_claimed(tmp_path: Path) -> None:
    built, tables = built_of(tmp_path)
    assert tables == []
    assert "not measured" in built.html("versions")


def test_an_example_that_prints_otherwise_under_a_version_has_a_row(tmp_path: Path) -> None:
    odd = {"page": "lists", "code": "f(x=1)", "got": "TypeError: no keywords"}
    built, (table,) = built_of(tmp_path, answers("2.11.0+cu130", odd), answers("2.13.0"), page=QUESTIONS)

    assert built.warnings == []
    assert table == [["torch", "page", "example", "prints"], ["2.11.0", "lists", "f(x=1)", "TypeError: no keywords"]]
    assert "Examples that were run: 7 under torch 2.11.0 and 7 under torch 2.13.0." in built.html("versions")


def test_examples_that_print_the_same_need_no_table(tmp_path: Path) -> None:
    built, tables = built_of(tmp_path, answers("2.11.0"), answers("2.13.0"), page=QUESTIONS)

    assert tables == []
    assert "All print what the pages show." in built.html("versions")
