"""The record of a kill matrix: it comes back as it was written, and says what speaks against the laws."""

from __future__ import annotations

import json

import pytest

from gradspec.report import RecordError, Source
from gradspec.selftest._record import Matrix, Subject

KILLED = Subject(sort="diseased", name="sign_flipped", group="function", killed_by=("vjp",), own=("vjp",))
MISSED = Subject(sort="diseased", name="sly", group="function", killed_by=("primal",), own=("vjp", "primal"))
ON_CUDA = Subject(sort="diseased", name="on_cuda", group="function", own=("parity",), not_measured=("parity",))
SOUND = Subject(sort="honest", name="scale", group="function", stock={"gradcheck": "accepts"})
SLANDERED = Subject(sort="honest", name="cube", group="function", killed_by=("vjp",))
SURVIVOR = Subject(sort="mutant", name="F.prints", group="F")
PROVEN = Subject(sort="mutant", name="ScaledCopy.not_allowed_in_graph", group="ScaledCopy")
CRASHED = Subject(sort="mutant", name="F.dies", group="F", crash="the interpreter died of SIGSEGV")
MATRIX = Matrix(
    provenance={"date": "2026-01-02", "torch": "2.13.0"},
    sources={"laws": Source(package="gradspec", files=("a.py",), hash="0")},
    population={"diseased": 2, "mutant": 9},
    subjects=(KILLED, MISSED, SOUND, SURVIVOR, CRASHED),
    seeds={"run": 2, "cases": 1, "tried": 1, "failures": []},
)


def test_a_record_comes_back_as_it_was_written():
    assert Matrix.from_json(MATRIX.to_json()) == MATRIX


def test_a_record_has_a_line_for_each_subject():
    lines = MATRIX.to_json().splitlines()

    assert sum('"sort"' in line for line in lines) == len(MATRIX.subjects)


def test_each_way_to_fail_is_named():
    assert MISSED.fault == "survived its own law vjp"
    assert SLANDERED.fault == "sound, and broken by vjp"
    assert SURVIVOR.fault == "survived, without a proof that nothing can tell"
    assert [subject.fault for subject in (KILLED, ON_CUDA, SOUND, PROVEN, CRASHED)] == [""] * 5
    assert MATRIX.faults == (MISSED, SURVIVOR)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        (json.dumps({"schema": 99}), "schema version 99"),
        (json.dumps({"schema": 1}), "is no kill matrix"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(text, message):
    with pytest.raises(RecordError, match=message):
        Matrix.from_json(text)
