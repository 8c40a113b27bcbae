"""What is committed of the campaign: every finding in training has a class and a proof."""

from __future__ import annotations

from pathlib import Path

from gradspec_lab.campaigns.packages import _summary

RECORD = Path(__file__).parents[2] / "docs" / "records" / "campaign.json"


def test_every_finding_in_training_has_a_class_and_a_proof():
    found = _summary.read_campaign(RECORD)
    said = _summary.classes()
    needed = {row["function"] for one in found["packages"] for row in one["functions"] if _summary.needs_a_class(row)}
    names = {one["name"] for one in found["packages"]}

    assert needed <= said.keys()
    assert {row["package"] for row in said.values()} <= names
    assert all((_summary.PROOFS / row["proof"]).is_file() for row in said.values())
    kept = {row["function"]: row["class"] for one in found["packages"] for row in one["functions"] if "class" in row}
    assert kept == {name: said[name]["class"] for name in needed}


def test_the_record_names_no_place_of_a_machine():
    text = RECORD.read_text(encoding="utf-8")
    assert len(text) < 100_000
    assert not [word for word in ("/tmp", "/home", "/work", "/root", "site-packages") if word in text]
