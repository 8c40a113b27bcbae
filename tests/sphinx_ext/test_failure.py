"""The output of a recorded run on a page: the words of the command, and a warning where they are no longer today's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from gradspec.law import Finding, Status
from gradspec.report import write_record
from sphinx_ext.handmade import Project, breaking, copied, older, report, verdict

PAGE = "# Failure\n\n```{gradspec-failure} failure.json\n```\n\n{gradspec:record}`failure`\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = copied("test-function", tmp_path)
    wrong = Finding(status=Status.BROKEN, message="a gradient differs", likely="every element is off by the factor 4")
    good, bad = report(made), verdict("vjp", "factor 2", wrong)
    kept = tuple(v for v in good.verdicts if (v.law, v.case) != ("vjp", "factor 2"))
    write_record(replace(good, verdicts=(*kept, bad)), made.source / "failure.json")
    with (made.source / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\nfailure\n```\n")
    (made.source / "failure.md").write_text(PAGE, encoding="utf-8")
    return made


def test_the_page_says_what_the_command_said(project: Project) -> None:
    built = project.build()
    assert (built.returncode, built.warnings) == (0, [])
    soup = BeautifulSoup(built.html("failure"), "html.parser")
    lines = soup.select_one("div.highlight pre").get_text().splitlines()
    assert lines[0] == "scale breaks `vjp` on case `factor 2`"
    assert "  Likely: every element is off by the factor 4" in lines
    assert lines[-1].startswith("scale on 2 cases: 3 laws hold, 1 broken (vjp)")
    assert "Measured on 2026-01-02 with torch 2.13.0" in soup.get_text()


def test_an_older_source_is_a_warning_in_each_build(project: Project) -> None:
    made = breaking(report(project))
    sources = {name: older(source) for name, source in made.sources.items()}
    write_record(replace(made, sources=sources), project.source / "failure.json")
    for _ in range(2):
        built = project.build()
        assert built.returncode == 1
        (line,) = built.warnings
        assert "record the run again [gradspec.stale]" in line


@pytest.mark.parametrize(("spoil", "said"), [("healthy", "nothing fails in"), ("gone", "failure.json")])
def test_a_record_without_a_failure_is_a_warning(project: Project, spoil: str, said: str) -> None:
    path = project.source / "failure.json"
    if spoil == "gone":
        path.unlink()
    else:
        write_record(report(project), path)
    built = project.build()
    assert built.returncode == 1
    assert any(said in line and "[gradspec.record]" in line for line in built.warnings)
