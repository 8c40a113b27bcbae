"""The table of checkers: what one says of a sound function in the same words is not counted as noticing a mistake."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup

from gradspec.report import write_record
from gradspec_lab.selftest._record import Matrix, Subject
from sphinx_ext.handmade import Project, copied, edited, report, with_the_laboratory

MISMATCH = "GradcheckError: Jacobian mismatch"
SUBJECTS = (
    Subject(sort="honest", name="scale", group="function", stock={"gradcheck": MISMATCH, "opcheck": "accepts"}),
    Subject(
        sort="diseased",
        name="wrong_factor",
        group="function",
        own=("vjp",),
        killed_by=("vjp",),
        stock={"gradcheck": MISMATCH, "gradcheck, fast mode": "GradcheckError: other", "opcheck": "accepts"},
    ),
    Subject(
        sort="diseased",
        name="sign_flipped",
        group="function",
        own=("vjp",),
        killed_by=("vjp",),
        stock={"gradcheck": MISMATCH, "opcheck": "accepts"},
    ),
    Subject(sort="diseased", name="sly", group="function", own=("formula",), stock={"opcheck": "OpCheckError: no"}),
    Subject(sort="diseased", name="a module", group="module", own=("copies",), killed_by=("copies",)),
)
PAGE = "# Checkers\n\n```{gradspec-checkers} kills.json\n:unmeasured: OpInfo\n```\n"


def prepared(folder: Path) -> Project:
    project = with_the_laboratory(copied("test-function", folder))
    write_record(report(project), project.record)
    matrix = Matrix(
        provenance={"date": "2026-01-02", "torch": "2.13.0"},
        laws=("vjp",),
        population={"diseased": 4, "honest": 1},
        subjects=SUBJECTS,
    )
    (project.source / "kills.json").write_text(matrix.to_json(), encoding="utf-8")
    (project.source / "checkers.md").write_text(PAGE, encoding="utf-8")
    with (project.source / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\ncheckers\n```\n")
    return project


def test_each_kind_of_mistake_has_a_row_of_counts(tmp_path: Path) -> None:
    built = prepared(tmp_path).build()
    assert (built.returncode, built.warnings) == (0, [])
    soup = BeautifulSoup(built.html("checkers"), "html.parser")
    rows = [[cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])] for row in soup.find_all("tr")]
    assert rows == [
        ["What is wrong", "gradcheck", "opcheck", "OpInfo", "gradspec"],
        ["Nothing: a sound function is rejected", "1 of 1", "0 of 1", "○ not measured", "0 of 1"],
        ["Wrong output value, shape or dtype", "0 of 1", "1 of 1", "○ not measured", "0 of 1"],
        ["Wrong gradient or second derivative", "1 of 2", "0 of 2", "○ not measured", "2 of 2"],
    ]
    assert "Measured on 2026-01-02 at commit unknown with torch 2.13.0." in soup.get_text()


def test_a_record_that_was_edited_is_a_warning(tmp_path: Path) -> None:
    project = prepared(tmp_path)
    edited(project.source / "kills.json", lambda data: data["groups"][-1]["subjects"].popitem())
    built = project.build()
    (line,) = built.warnings
    assert "has been edited since it was measured" in line
    assert "1 of 2" not in built.html("checkers")
