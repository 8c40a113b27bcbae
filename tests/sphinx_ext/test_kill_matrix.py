"""The page of who killed whom: it says what the record says, and that nothing was measured where there is none."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup

from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._seeds_record import Seeds
from sphinx_ext.handmade import Built, Project, copied, edited, resealed

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


SWEPT = {
    "run": 100,
    "at_most": {"export": 10},
    "cases": 4,
    "tried": 3,
    "specs": ["scale"],
    "laws": ["vjp", "jvp"],
    "verdicts": 1_600,
    "by_law": {"vjp": 900, "jvp": 700},
    "failures": ["seed 7: scale · vjp · matrix: the bar is too wide"],
    "diseased": {"specimens": 4, "tried": 3, "asked": 1_300, "missed": ["seed 9: off_by_a_millionth · vjp"]},
}


def prepared(folder: Path, *, faults: bool = True) -> Project:
    project = copied("test-kills", folder)
    matrix = Matrix(
        provenance={"date": "2026-01-02", "torch": "2.13.0", "stages": ["one case", "all"]},
        laws=("vjp", "jvp"),
        population={"diseased": 2, "honest": 1, "mutant": 9},
        subjects=SUBJECTS if faults else tuple(s for s in SUBJECTS if not s.fault),
    )
    project.record.write_text(matrix.to_json(), encoding="utf-8")
    facts = {"date": "2025-12-31", "commit": "0123456789ab"}
    seeds = Seeds(provenance=facts, swept=SWEPT)
    (project.source / "seeds.json").write_text(seeds.to_json(), encoding="utf-8")
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
    assert "The own laws of 3 of 4 diseased specimens notice them 1,299 of 1,300 times." in text
    assert "Under seed 9: off_by_a_millionth · vjp misses it." in text
    assert "sign_flipped vjp , primal rejects (GradcheckError) accepts" in text
    assert "1 survive without a proof." in text
    assert "A mutant is held to one case; then to all; no further once it is killed." in text
    assert "Measured on 2026-01-02 with torch 2.13.0." in text
    assert "Measured on 2025-12-31 at commit 0123456789ab." in text
    assert "not measured" not in text


def test_each_table_is_folded_and_counted(tmp_path: Path) -> None:
    soup = BeautifulSoup(prepared(tmp_path).build().html(), "html.parser")
    assert [fold.summary.get_text() for fold in soup.select("details:has(table)")] == [
        "Specimens that are broken on purpose: all 2",
        "Sound specimens: all 1",
        "Mutants of the functions documented here: all 2",
    ]
    assert len(soup.select("details table")) == len(soup.select("table")) == 3


def test_what_speaks_against_the_laws_fails_the_build(tmp_path: Path) -> None:
    built = prepared(tmp_path).build()

    assert built.returncode != 0
    assert any("sly survived its own law vjp" in line for line in built.warnings)
    assert any("Scale.prints survived, without a proof that nothing can tell" in line for line in built.warnings)


def test_seeds_that_are_not_the_sum_of_their_rows_are_refused(tmp_path: Path) -> None:
    project = prepared(tmp_path, faults=False)
    resealed(project.source / "seeds.json", lambda data: data["swept"]["by_law"].update(vjp=901))
    built = project.build()
    (line,) = built.warnings
    assert "its total is not the sum of its rows" in line
    assert "[gradspec.record]" in line
    assert "not measured (many seeds)" in words(built)
    assert "1,600" not in words(built)


def test_the_seeds_are_shown_where_the_page_asks_for_them_alone(tmp_path: Path) -> None:
    project = prepared(tmp_path, faults=False)
    page = project.source / "index.md"
    page.write_text(page.read_text(encoding="utf-8").replace(":seeds: seeds.json\n", ""), encoding="utf-8")
    built = project.build()
    assert built.warnings == []
    assert "seeds" not in words(built)


def test_a_kill_that_was_added_by_hand_is_refused(tmp_path: Path) -> None:
    project = prepared(tmp_path)
    edited(project.record, lambda data: data["groups"][0]["subjects"]["sly"].__setitem__(0, 0))
    built = project.build()
    (line,) = built.warnings
    assert "has been edited since it was measured" in line
    assert "specimens are killed" not in words(built)


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
