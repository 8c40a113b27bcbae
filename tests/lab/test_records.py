"""The committed records: each is as it was written, those that must be current are, and what is stale is named."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from drift.record_edits import RECORD_EDITS
from gradspec._record import Source, to_text
from gradspec._record._file import CHECKSUM, SCHEMA, checksum
from gradspec.profile import load_profile
from gradspec_lab.evidence import records
from gradspec_lab.evidence.records import RECORDED, ROOT, Recorded, State, cells, state, states

BESIDE_TESTS = [one for one in RECORDED if one.folder != records.RECORDS]
COMMITTED = sorted(
    [
        *(ROOT / "docs" / "records").rglob("*.json"),
        *(ROOT / "tests" / "strangers").rglob("record.json"),
        *(ROOT / "tests" / "lab" / "audits" / "published" / f"{name}.json" for name in ("results", "truth")),
    ]
)
#: These were measured before they noted when: what is not known is not made up.
UNDATED = {"tests/lab/audits/published/truth.json"}


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_committed_record_is_as_it_was_written(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["schema"] == SCHEMA
    assert record[CHECKSUM] == checksum(record)
    assert ("date" in record["provenance"]) is (path.relative_to(ROOT).as_posix() not in UNDATED)
    assert not str(record["provenance"].get("commit", "")).startswith("/")


def test_each_committed_record_is_watched() -> None:
    watched = {path for one in RECORDED for path in (ROOT / one.folder).glob(one.files)}
    assert watched == set(COMMITTED)


def test_what_must_be_current_is_and_nothing_of_it_was_left_out() -> None:
    found = [one for one in states() if one.recorded.must_be_current]
    assert [f"{one.path.name}: {one.error or ', '.join(one.stale)}" for one in found if not one.is_current] == []
    assert {one.recorded.name for one in found} == {"peers", "kills", "audits", "figures", "failure", "gallery"}
    assert sum(one.cells for one in found if one.recorded.name == "peers") > 4_000


def test_the_check_needs_neither_torch_nor_an_installed_gradspec() -> None:
    path = "import sys; sys.argv = ['records.py', '--check']; sys.path.insert(0, 'src')"
    code = f"{path}; from gradspec_lab.evidence import records"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{code}; records.check(list(records.states())); print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"torch", "numpy", "click"} & set(run.stdout.splitlines()[-1].split())
    assert "docs/records/peers.json: " in run.stdout


@pytest.mark.parametrize("recorded", BESIDE_TESTS, ids=lambda recorded: recorded.name)
def test_a_record_beside_tests_that_is_edited_by_hand_is_named(
    recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{recorded.folder}/{recorded.files}"
    (edit,) = [edit for edit in RECORD_EDITS if edit.file == name]
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(edit.applied((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    assert records.check([state(recorded, path, ROOT)]) == 1
    assert re.match(edit.says, capsys.readouterr().out)


MADE = Recorded(name="made", files="made.json", kind="experiment", command=("none.py",))
OLDER = Recorded(name="older", files="older.json", kind="experiment", command=(), must_be_current=False)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("RATE = 0.1\n\n\ndef train():\n    return RATE\n")
    return tmp_path / "train.py"


def written(script: Path, recorded: Recorded = MADE, **changes: Any) -> State:
    source = Source(roots=(script.name,)).today(script.parent)
    content: Mapping[str, Any] = {
        "provenance": {"date": "2026-01-02 03:04 UTC"},
        "sources": {"experiment": source.to_dict()},
        "numbers": {"ms": 25.5},
    }
    path = script.parent / recorded.files
    path.write_text(to_text("experiment", {**content, **changes}))
    return state(recorded, path, script.parent)


def test_a_record_is_current_until_what_it_stands_on_changes(script: Path) -> None:
    assert written(script).is_current
    script.write_text(script.read_text() + "\n\n# a remark\n")
    path = script.parent / "made.json"
    assert state(MADE, path, script.parent).is_current
    script.write_text(script.read_text().replace("0.1", "0.2"))
    found = state(MADE, path, script.parent)
    assert (found.stale, found.stale_cells, found.date) == (("experiment",), 1, "2026-01-02")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text.replace("25.5", "2.5"), "has been edited since"),
        (lambda text: text[:40], "is not JSON"),
        (lambda text: text.replace('"schema": 2', '"schema": 9'), "schema version 9"),
    ],
)
def test_a_record_that_cannot_be_read_is_not_current(script: Path, spoil: Any, said: str) -> None:
    written(script)
    path = script.parent / "made.json"
    path.write_text(spoil(path.read_text()))
    found = state(MADE, path, script.parent)
    assert said in found.error
    assert not found.is_current


@pytest.mark.parametrize("sources", [{}, {"experiment": {"roots": 5}}, {"experiment": 5}, [1]])
def test_a_record_that_stands_on_nothing_is_not_current(script: Path, sources: Any) -> None:
    assert not written(script, sources=sources).is_current


def test_what_is_stale_is_named_and_fails_only_where_it_must_be_current(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ROOT", script.parent)
    states = []
    for recorded in (MADE, OLDER):
        written(script, recorded)
        states.append(recorded)
    script.write_text("RATE = 0.3\n")
    found = [state(one, script.parent / one.files, script.parent) for one in states]
    assert records.check(found) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "made.json: 1 of 1 cell of an older source (2026-01-02): experiment"
    assert said[1] == f"{said[0].replace('made', 'older')}, which it may be: its page says so"


def test_a_record_that_may_be_older_may_be_missing_and_may_not_be_edited(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ROOT", script.parent)
    monkeypatch.setattr(records, "RECORDED", (replace(OLDER, folder=Path()),))
    assert records.check(list(states())) == 0
    assert capsys.readouterr().out == "older.json: there is none\n"
    written(script, OLDER)
    path = script.parent / "older.json"
    path.write_text(path.read_text().replace("25.5", "2.5"))
    assert records.check(list(states())) == 1
    assert "has been edited since it was measured" in capsys.readouterr().out


def test_the_cells_of_a_report_stand_on_spec_harness_and_the_laws_that_decide() -> None:
    compile_ = {"requires": ["primal"], "explained_by": ["primal", "vjp"], "over": "cases"}
    record = {
        "sources": {},
        "sheets": {"scale": {"kind": "function"}},
        "laws": {"compile": compile_, "examples": {"requires": [], "over": "documents"}},
        "verdicts": [
            {"law": "compile", "spec": "scale", "status": "holds"},
            {"law": "compile", "spec": "scale", "status": "broken"},
            {"law": "examples", "spec": "scale", "status": "holds"},
        ],
    }
    assert list(cells("report", record)) == [
        {"spec scale", "harness function", "law compile", "law primal"},
        {"spec scale", "harness function", "law compile", "law primal", "law vjp"},
        {"spec scale", "harness function", "law examples", "examples of spec scale"},
    ]


def test_a_record_that_must_hold_all_laws_is_stale_where_one_is_new(script: Path) -> None:
    whole = Recorded(name="made", files="made.json", kind="experiment", command=(), laws=lambda law: law.name == "vjp")
    assert written(script, whole).stale == ("law vjp, which is new",)
    source = Source(roots=(script.name,)).today(script.parent)
    assert written(script, whole, sources={"law vjp": source.to_dict()}).is_current
    gone = {"law vjp": source.to_dict(), "law that_was": source.to_dict()}
    assert written(script, whole, sources=gone).stale == ("law that_was, which is gone",)


@pytest.mark.parametrize(("directions", "stale"), [(2, False), (1, True)])
def test_a_profile_that_has_become_easier_makes_a_record_stale(script: Path, directions: int, stale: bool) -> None:
    profile = {**asdict(load_profile("quick")), "laws": [], "directions": directions}
    found = written(script, provenance={"date": "2026-01-02", "profile": profile})
    assert found.is_current is not stale
    assert found.stale_cells == stale
