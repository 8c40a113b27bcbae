"""A record that was edited by hand is noticed, and every committed one is sealed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradspec._seal import is_intact, sealed
from gradspec.report import RecordError
from gradspec.sphinx_ext._plot_record import read_experiment

RECORDS = Path(__file__).parents[2] / "docs" / "records"
SEALED = [*RECORDS.glob("benchmarks/*.json"), *RECORDS.glob("examples/*.json"), RECORDS / "audits.json"]


def test_a_seal_survives_json_and_no_edit() -> None:
    record = sealed({"schema": 1, "shape": (2, 3), "ms": 0.1, 7: "seven"})
    read = json.loads(json.dumps(record))
    assert is_intact(read)
    assert not is_intact({**read, "ms": 0.2})
    assert is_intact({"ms": 0.2}), "without a seal it says nothing"


@pytest.mark.parametrize("path", SEALED, ids=lambda path: path.stem)
def test_a_committed_record_is_as_it_was_measured(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert "seal" in record
    assert is_intact(record)


def test_an_edited_record_cannot_be_shown(tmp_path: Path) -> None:
    text = json.dumps(sealed({"schema": 1, "numbers": {"ms": 25.5}}))
    path = tmp_path / "record.json"
    path.write_text(text.replace("25.5", "2.5"))
    with pytest.raises(RecordError, match=r"record\.json has been edited since it was measured"):
        read_experiment(path)
