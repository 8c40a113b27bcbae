"""The gallery on a page: each function once, under the most dangerous thing that was found, with what is deliberate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from gradspec._record import to_text
from sphinx_ext.handmade import Project, copied, edited, resealed, source_of


def function(name: str, *ranks: str, deliberate: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "package": "pub",
        "version": "1.0",
        "class": name,
        "reproduce": ["python -m pip install pub==1.0", f"gradspec audit pub:{name}"],
        "report": "https://example.org/pub/issues",
        "found": [{"rank": r, "what": f"{r} differs by", "measured": "0.5", "laws": ["vjp", "jvp"]} for r in ranks],
        "deliberate": list(deliberate),
    }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = copied("test-kills", tmp_path)
    (made.source / "index.md").write_text("# Gallery\n\n```{gradspec-gallery} record.json\n```\n", encoding="utf-8")
    content = {
        "provenance": {"date": "2026-01-02"},
        "sources": {"gallery": source_of(made.source / "laws.py").to_dict()},
        "measured_with": {"torch": "2.13.0", "python": "3.11"},
        "functions": [
            function("Straight", "transforms", deliberate=("its name says so",)),
            function("Sound"),
            function("Wrong", "transforms", "training"),
        ],
    }
    made.record.write_text(to_text("gallery", content), encoding="utf-8")
    return made


def test_each_function_stands_once_and_the_most_dangerous_first(project: Project) -> None:
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    soup = BeautifulSoup(built.html(), "html.parser")
    sections = {
        section.h2.get_text().rstrip("¶"): [code.get_text() for code in section.select("p.rubric code")]
        for section in soup.select("section section")
    }
    assert list(sections.values()) == [["Wrong"], ["Straight"], ["Sound"]]
    assert next(iter(sections)) == "Wrong in plain training"
    text = " ".join(soup.get_text(" ").split())
    assert "3 functions of 1 package, measured with torch 2.13.0 and Python 3.11: 1 wrong in plain training, " in text
    assert "1 only when compiled or exported, 1 with nothing that goes wrong silently." in text


def test_the_filter_has_a_place_and_each_entry_is_one(project: Project) -> None:
    built = project.build()
    soup = BeautifulSoup(built.html(), "html.parser")

    assert len(soup.select(".gradspec-filter")) == 1
    assert [entry.code.get_text() for entry in soup.select(".gradspec-entry")] == ["Wrong", "Straight", "Sound"]
    (script,) = soup.select("script[src*=filter]")
    assert script["src"].partition("?")[0] == "_static/gradspec/filter.js"
    assert (built.folder / "_static" / "gradspec" / "filter.js").exists()
    assert not BeautifulSoup(built.html("search"), "html.parser").select("script[src*=filter]")


def test_what_was_found_is_said_with_its_law_and_what_is_deliberate_too(project: Project) -> None:
    soup = BeautifulSoup(project.build().html(), "html.parser")
    lines = [" ".join(item.get_text(" ").split()) for item in soup.select("section section li")]
    assert lines == [
        "transforms differs by 0.5 (law vjp ).",
        "training differs by 0.5 (law vjp ).",
        "transforms differs by 0.5 (law vjp ).",
        "Deliberate: its name says so.",
    ]


def test_the_lines_that_reproduce_it_are_folded(project: Project) -> None:
    soup = BeautifulSoup(project.build().html(), "html.parser")
    folds = soup.select("details")
    assert [fold.summary.get_text() for fold in folds] == ["Reproduce and report"] * 3
    assert folds[0].pre.get_text().split("\n")[:2] == ["python -m pip install pub==1.0", "gradspec audit pub:Wrong"]
    assert folds[0].select_one("p a")["href"] == "https://example.org/pub/issues"


def test_an_address_that_can_run_code_is_no_link(project: Project) -> None:
    resealed(project.record, lambda data: data["functions"][2].update(report="javascript:alert(1)"))
    soup = BeautifulSoup(project.build().html(), "html.parser")
    lines = [fold.p for fold in soup.select("details")]
    assert [line.get_text() for line in lines].count("Report it: javascript:alert(1).") == 1
    assert [a["href"] for line in lines for a in line.select("a")] == ["https://example.org/pub/issues"] * 2


@pytest.mark.parametrize(
    ("edit", "subtype"),
    [
        (lambda data: data["functions"].clear(), "record"),
        (lambda data: data["functions"][2]["found"][0].update(rank="nice"), "record"),
    ],
    ids=["edited", "edited to an unknown rank"],
)
def test_a_gallery_that_was_edited_is_not_shown(project: Project, edit: Any, subtype: str) -> None:
    edited(project.record, edit)
    built = project.build()
    (line,) = built.warnings
    assert f"[gradspec.{subtype}]" in line
    assert "Wrong" not in built.html()
