"""Shards from a shell: their records together are the record of the run."""

from dataclasses import replace

import pytest

from gradspec.law import Finding, Status
from gradspec.report import read_record, read_records

LAWS = ("--law", "vjp", "--law", "primal")


def cells(report):
    return {(v.spec, v.law, v.case): v.status for v in report.verdicts}


def test_that_shards_are_joined_and_shown(gradspec, folder):
    for number in (1, 2, 3):
        gradspec("check", "tiny", *LAWS, "--shard", f"{number}/3", "--record", f"{number}.json")
    gradspec("check", "tiny", *LAWS, "--record", "whole.json")
    result = gradspec("merge", "1.json", "2.json", "3.json", "--record", "merged.json")

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith(": 8 cells\nwrote merged.json\n")
    merged, whole = read_record(folder / "merged.json"), read_record(folder / "whole.json")
    assert cells(merged) == cells(whole)
    shown = gradspec("show", "merged.json", "--format", "badge")
    assert (shown.exit_code, '"1 finding"' in shown.stdout) == (1, True)


def test_that_a_run_of_which_a_shard_is_missing_is_joined_and_fails(gradspec, folder):
    for number in (1, 3):
        gradspec("check", "tiny", *LAWS, "--shard", f"{number}/3", "--record", f"{number}.json")
    result = gradspec("merge", "1.json", "3.json", "--record", "merged.json")

    assert result.exit_code == 1
    assert result.stderr.startswith("merged.json: incomplete: ")
    assert gradspec("show", "merged.json", "--exit-zero").stderr == result.stderr
    assert cells(read_record(folder / "merged.json"))


def test_that_a_shard_is_measured_once(gradspec):
    words = ("check", "tiny", *LAWS, "--shard", "1/2", "--record", "1.json")

    assert "0 of 4 cells are current" in gradspec(*words).stderr
    assert "4 of 4 cells are current" in gradspec(*words).stderr


def test_that_a_shard_of_nothing_is_no_failure(gradspec):
    result = gradspec("check", "tiny", *LAWS, "--shard", "9/9")

    assert (result.exit_code, result.stdout) == (0, "")


def test_that_environments_are_shown_with_what_differs(gradspec, folder):
    gradspec("check", "tiny", *LAWS, "--record", "a.json")
    record = read_record(folder / "a.json")
    older = record.provenance["torch"]
    newer = type(record)(
        provenance={**record.provenance, "torch": "2.99.0"},
        sheets=record.sheets,
        laws=record.laws,
        sources=record.sources,
        verdicts=tuple(v for v in record.verdicts if v.case != "factor 1"),
    )
    (folder / "b.json").write_text(newer.to_json())
    joined = gradspec("merge", "a.json", "b.json", "--record", "both.json")
    shown = gradspec("show", "both.json")

    assert joined.stdout == f"torch {older}: 8 cells\ntorch 2.99.0: 4 cells\nwrote both.json\n"
    assert len(read_records(folder / "both.json")) == 2
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (1, "2 environments, 0 cells differ")
    refused = gradspec("show", "both.json", "--html", "page.html")
    assert refused.stderr == "Error: both.json holds 2 environments: --format, --html and --baseline take one\n"


def changed(record, *, provenance=None, **finding):
    """Return a record whose first verdict has another finding."""
    first, *rest = record.verdicts
    return replace(
        record,
        provenance={**record.provenance, **(provenance or {})},
        verdicts=(replace(first, finding=Finding(**finding)), *rest),
    )


def test_that_a_cell_in_which_environments_differ_is_a_row(gradspec, folder):
    gradspec("check", "tiny", *LAWS, "--record", "a.json")
    other = changed(read_record(folder / "a.json"), provenance={"torch": "2.99.0"}, status=Status.ERROR)
    (folder / "b.json").write_text(other.to_json())
    gradspec("merge", "a.json", "b.json", "--record", "both.json")
    shown = gradspec("show", "both.json")

    assert shown.stdout.startswith("2 environments, 1 cell differs\n")
    rows = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "honest primal factor 0.1 holds error" in rows, rows


def test_that_an_answer_is_kept_where_another_machine_had_none_in_time(gradspec, folder):
    gradspec("check", "tiny", *LAWS, "--record", "a.json")
    hung = changed(read_record(folder / "a.json"), status=Status.NOT_MEASURED, details={"limit": "time"})
    (folder / "b.json").write_text(hung.to_json())
    result = gradspec("merge", "a.json", "b.json", "--record", "both.json")

    note, *_ = result.stdout.splitlines()
    assert note.startswith("conflict: honest · primal · factor 0.1 ")
    assert note.endswith(": the answer that came is kept")
    assert cells(read_record(folder / "both.json")) == cells(read_record(folder / "a.json"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "tiny", "--shard", "9/8"), "--shard 9/8: there is no part 9 of 8, they count from 1"),
        (("check", "tiny", "--shard", "0/8"), "--shard 0/8: there is no part 0 of 8, they count from 1"),
        (("check", "tiny", "--shard", "three"), "--shard three is not N/M: write --shard 3/8 for the third of eight"),
        (("merge", "tiny.py", "--record", "out.json"), "tiny.py is not JSON "),
        (("merge", "nowhere.json", "--record", "out.json"), "nowhere.json cannot be read "),
        (("merge", "a.json", "--record", "tiny.py"), "--record tiny.py is not a record of gradspec, and would be "),
        (("merge", "a.json", "--record", "tiny.py/a.json"), "--record tiny.py/a.json cannot be written "),
    ],
)
def test_that_what_cannot_be_joined_is_one_line(gradspec, folder, words, message):
    result = gradspec(*words)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1
    assert not (folder / "out.json").exists()
