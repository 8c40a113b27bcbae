"""The page of who killed whom: it says what the record says, and that nothing was measured where there is none."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup

from gradspec.report import Source
from gradspec.selftest._record import Matrix, Subject
from gradspec.source import fingerprint
from sphinx_ext.handmade import Built, Project, copied

SUBJECTS = (
    Subject(
        sort="diseased",
        name="sign_flipped",
        group="function",
        killed_by=("primal", "vjp"),
        own=("vjp",),
        stock={"gradcheck": "GradcheckError: Jacobian mismatch", "opcheck": "accepts"},
    ),
    Subject(sort="diseased", name="sly", group="function", own=("vjp",), stock={"gradcheck": "accepts"}),
    Subject(sort="honest", name="scale", group="function", stock={"gradcheck": "accepts", "opcheck": "accepts"}),
    Subject(sort="mutant", name="Scale.sign_flipped", group="Scale", killed_by=("vjp",)),
    Subject(sort="mutant", name="Scale.prints", group="Scale"),
)


def prepared(folder: Path, *, stale: bool = False) -> Project:
    project = copied("test-kills", folder)
    module = str(project.source / "conf.py")
    found = "0" if stale else fingerprint([module], None)
    matrix = Matrix(
        provenance={"date": "2026-01-02", "torch": "2.13.0", "seconds": 9, "jobs": 2, "stages": ["one case", "all"]},
        sources={"laws": Source(package="", files=(module,), hash=found)},
        population={"diseased": 2, "honest": 1, "mutant": 9},
        subjects=SUBJECTS,
        seeds={
            "run": 100,
            "at_most": {"export": 10},
            "cases": 4,
            "tried": 3,
            "specs": ["scale"],
            "laws": ["vjp", "jvp"],
            "verdicts": 1_600,
            "failures": ["seed 7: scale · vjp · matrix: the bar is too wide"],
        },
    )
    project.record.write_text(matrix.to_json(), encoding="utf-8")
    return project


def words(built: Built) -> str:
    return " ".join(BeautifulSoup(built.html(), "html.parser").get_text(" ").split())


def test_the_counts_and_the_tables_say_what_the_record_says(tmp_path: Path) -> None:
    built = prepared(tmp_path).build()
    assert len(built.warnings) == 2
    text = words(built)

    assert "1 of 2 diseased specimens are killed by their own law." in text
    assert "0 of 1 sound specimens are broken by any law." in text
    assert "1 of 2 mutants are killed, 50.0% (2 were tried, of 9 that there are)." in text
    assert "0 of the 1 that survive are proven to be no different from the original." in text
    assert "gradcheck rejects 1 of 2 of the same diseased specimens, and 0 of 1 of the sound ones." in text
    assert (
        "Under 100 seeds (10 of them for export), without 1 of 4 cases, which were not tried, 1 of 1,600 verdicts"
        in text
    )
    assert "Under seed 7: scale · vjp · matrix: the bar is too wide." in text
    assert "sign_flipped vjp , primal rejects (GradcheckError) accepts" in text
    assert "1 survive without a proof." in text
    assert "A mutant is held to one case; then to all; no further once it is killed." in text
    assert "with torch 2.13.0, in 9 s on 2 processes." in text
    assert "not measured" not in text


def test_what_speaks_against_the_laws_fails_the_build(tmp_path: Path) -> None:
    built = prepared(tmp_path).build()

    assert built.returncode != 0
    assert any("sly survived its own law vjp" in line for line in built.warnings)
    assert any("Scale.prints survived, without a proof that nothing can tell" in line for line in built.warnings)


def test_a_record_of_an_older_source_says_so(tmp_path: Path) -> None:
    built = prepared(tmp_path, stale=True).build()

    assert (built.returncode, built.warnings) == (0, [])
    assert "not measured (recorded for an older source, on 2026-01-02)" in words(built)


def test_without_a_record_nothing_was_measured(tmp_path: Path) -> None:
    built = copied("test-kills", tmp_path).build()

    assert (built.returncode, built.warnings) == (0, [])
    assert "not measured (there is no record)" in words(built)


def test_a_record_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    project = prepared(tmp_path)
    project.record.write_text('{"schema": 99}', encoding="utf-8")
    built = project.build()

    assert built.returncode != 0
    assert any("schema version 99" in line for line in built.warnings)
