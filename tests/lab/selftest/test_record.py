"""The record of a kill matrix: it comes back as it was written, and says what speaks against the laws."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gradspec._record import RecordError, to_text
from gradspec_lab.selftest._record import Matrix, Subject
from gradspec_lab.selftest._seeds_record import Seeds, read_seeds

KILLED = Subject(sort="diseased", name="sign_flipped", group="function", killed_by=("vjp",), own=("vjp",))
MISSED = Subject(sort="diseased", name="sly", group="function", killed_by=("primal",), own=("vjp", "primal"))
MISNAMED = Subject(
    sort="diseased",
    name="mute",
    group="function",
    killed_by=("vjp",),
    own=("vjp",),
    other_words={"vjp": "differs in 4 of 4 elements"},
)
ON_CUDA = Subject(sort="diseased", name="on_cuda", group="function", own=("parity",), not_measured=("parity",))
SOUND = Subject(sort="honest", name="scale", group="function", stock={"gradcheck": "accepts"})
SLANDERED = Subject(sort="honest", name="cube", group="function", killed_by=("vjp",))
SURVIVOR = Subject(sort="mutant", name="F.prints", group="F")
PROVEN = Subject(sort="mutant", name="ScaledCopy.not_allowed_in_graph", group="ScaledCopy")
CRASHED = Subject(sort="mutant", name="F.dies", group="F", crash="the interpreter died of SIGSEGV")
MATRIX = Matrix(
    provenance={"date": "2026-01-02", "torch": "2.13.0"},
    laws=("vjp", "primal"),
    population={"diseased": 2, "mutant": 9},
    subjects=(KILLED, MISSED, MISNAMED, SOUND, SURVIVOR, CRASHED),
)


def test_a_record_comes_back_as_it_was_written():
    assert Matrix.from_json(MATRIX.to_json()) == MATRIX


def test_a_record_has_a_line_for_each_group():
    lines = MATRIX.to_json().splitlines()

    assert sum('"sort"' in line for line in lines) == 3


def test_each_way_to_fail_is_named():
    assert MISSED.fault == "survived its own law vjp"
    assert MISNAMED.fault == "its own law vjp says something else: differs in 4 of 4 elements"
    assert SLANDERED.fault == "sound, and broken by vjp"
    assert SURVIVOR.fault == "survived, without a proof that nothing can tell"
    assert [subject.fault for subject in (KILLED, ON_CUDA, SOUND, PROVEN, CRASHED)] == [""] * 5
    assert MATRIX.faults == (MISSED, MISNAMED, SURVIVOR)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        (json.dumps({"schema": 99}), "schema version 99"),
        (MATRIX.to_json().replace("scale", "stale"), "has been edited since"),
        (to_text("seeds", {}), "is a record of kind 'seeds', expected 'kill matrix'"),
        (to_text("kill matrix", {"provenance": {}}), "is no kill matrix"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(text, message):
    with pytest.raises(RecordError, match=message):
        Matrix.from_json(text)


def test_seeds_come_back_as_they_were_written_if_their_total_is_the_sum_of_their_rows(tmp_path):
    sick = {"specimens": 1, "tried": 1, "asked": 2, "missed": ["seed 1: slip · vjp"]}
    swept = {"verdicts": 5, "by_law": {"vjp": 3, "jvp": 2}, "tried": 2, "failures": ["one"], "diseased": sick}
    rows = (
        {"spec": "a", "case": "b", "verdicts": 2},
        {"spec": "a", "case": "c", "verdicts": 3, "failures": [[0, "vjp", "off"]]},
        {"specimen": "slip", "asked": 2, "missed": [[1, "vjp"]]},
    )
    seeds = Seeds(provenance={}, swept=swept, rows=rows)
    (tmp_path / "seeds.json").write_text(seeds.to_json())

    assert read_seeds(tmp_path / "seeds.json") == seeds
    for wrong in (
        replace(seeds, swept={**swept, "verdicts": 6}),
        replace(seeds, swept={**swept, "failures": []}),
        replace(seeds, swept={**swept, "diseased": {**sick, "missed": []}}),
        replace(seeds, swept={**swept, "diseased": {**sick, "tried": 2}}),
        replace(seeds, rows=rows[1:]),
        replace(seeds, rows=rows[:-1]),
    ):
        (tmp_path / "seeds.json").write_text(wrong.to_json())
        with pytest.raises(RecordError, match="its total is not the sum of its rows"):
            read_seeds(tmp_path / "seeds.json")


def test_seeds_of_a_run_that_had_no_rows_yet_come_back(tmp_path):
    seeds = Seeds(provenance={}, swept={"verdicts": 5, "by_law": {"vjp": 3, "jvp": 2}, "failures": []})
    (tmp_path / "seeds.json").write_text(seeds.to_json())

    assert read_seeds(tmp_path / "seeds.json") == seeds
    (tmp_path / "seeds.json").write_text(replace(seeds, swept={**seeds.swept, "verdicts": 6}).to_json())
    with pytest.raises(RecordError, match="its total is not the sum of its rows"):
        read_seeds(tmp_path / "seeds.json")
