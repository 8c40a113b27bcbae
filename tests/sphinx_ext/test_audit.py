"""An audit on a page: what the record found, and a warning where it is of an older source or contradicts itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from gradspec._record import to_text
from sphinx_ext.handmade import Built, Project, copied, edited, resealed, source_of

AUDIT = {
    "name": "mod:Thing",
    "package": "pub",
    "version": "1.0",
    "target": "pub.mod:Thing",
    "case": "torch.ones(2)",
    "command": "gradspec audit pub.mod:Thing",
    "verdicts": {"vjp": "broken", "jvp": "holds", "formula": "holds", "vmap": "not_applicable"},
    "findings": [{"law": "vjp", "status": "broken", "message": "off by a sign", "got": "-1", "expected": "1"}],
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = copied("test-kills", tmp_path)
    (made.source / "index.md").write_text(
        "# Audit\n\n```{gradspec-audit} record.json mod:Thing\n```\n", encoding="utf-8"
    )
    sources = {"law vjp": source_of(made.source / "laws.py").to_dict()}
    content = {"provenance": {"date": "2026-01-02", "torch": "2.13.0"}, "sources": sources, "audits": [AUDIT]}
    made.record.write_text(to_text("audits", content), encoding="utf-8")
    return made


def words(built: Built) -> str:
    return " ".join(BeautifulSoup(built.html(), "html.parser").get_text(" ").split())


def fails_twice(project: Project, subtype: str, says: str) -> Built:
    for attempt in ("first build", "incremental build"):
        built = project.build()
        assert built.returncode == 1, attempt
        (line,) = [line for line in built.warnings if f"[gradspec.{subtype}]" in line]
        assert "index.md:3:" in line
        assert says in line
    return built


def without_the_law(built: Built) -> list[str]:
    """Return the warnings, without that the law has no page here."""
    return [line for line in built.warnings if "gradspec:law reference target not found" not in line]


def test_the_page_says_what_the_record_says(project: Project) -> None:
    built = project.build()
    assert without_the_law(built) == []
    text = words(built)
    assert "Thing of pub 1.0:" in text
    assert "off by a sign got -1, expected 1" in text
    assert "The other laws: 2 holds, 1 not applicable. Measured on 2026-01-02 with torch 2.13.0." in text


def test_a_law_that_changes_after_a_good_build_fails_the_next_ones(project: Project) -> None:
    assert without_the_law(project.build()) == []
    (project.source / "laws.py").write_text("LAWS = ()\n", encoding="utf-8")
    built = fails_twice(project, "stale", "record.json was measured of an older source: measure it again")
    assert "off by a sign" in words(built)


def a_verdict(data: Any) -> None:
    data["audits"][0]["verdicts"]["vjp"] = "holds"


def test_an_audit_that_was_edited_by_hand_is_refused(project: Project) -> None:
    edited(project.record, a_verdict)
    built = fails_twice(project, "record", "has been edited since it was measured")
    assert "not measured" in words(built)


def test_an_audit_whose_findings_are_not_those_of_its_verdicts_is_refused(project: Project) -> None:
    resealed(project.record, a_verdict)
    built = fails_twice(project, "record", "0 of its verdicts fail, and it has 1 findings")
    assert "off by a sign" not in words(built)
