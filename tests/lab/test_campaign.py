"""The campaign: packages, each in an environment of its own, a program that uses it, and what was found."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec_lab.__main__ import main
from gradspec_lab.campaigns.packages import _run, _summary, _table
from gradspec_lab.campaigns.packages.watched import without_paths

FUNCTION = """
import torch


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, grad):
        return {factor} * grad
"""
TABLE = """
[{name}]
version = "1.0"
seconds = {seconds}
program = '''
import time

import torch
import {name}

time.sleep({sleep})
{name}.Halved.apply(torch.randn(4, 3, requires_grad=True)).sum().backward()
'''
"""


def row(function: str, training: str, *findings: dict) -> dict:
    return {
        "function": function,
        "training": training,
        "kinds": ["(float32[3])"],
        "why": "",
        "findings": list(findings),
    }


def result(*rows: dict, name: str = "tiny", status: str = "measured") -> dict:
    facts = {"name": name, "version": "1.0", "domain": "made", "status": status, "why": "" if rows else "no wheel"}
    return {**facts, "provenance": {"commit": "abc"}, "functions": list(rows)}


def finding(rank: str, *, scope: str = "training", law: str = "surrogate") -> dict:
    return {"scope": scope, "rank": rank, "laws": [law], "says": "it differs", "got": "2", "expected": "1"}


def test_a_package_without_a_version_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text('[tiny]\nversion = "1.0"\nneeds = ["other"]\nprogram = ""\n')
    with pytest.raises(ValueError, match="'other' has no version: write NAME==VERSION"):
        _table.packages(tmp_path)


def test_a_package_is_in_one_table(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text('[tiny]\nversion = "1.0"\nprogram = ""\n')
    with pytest.raises(ValueError, match="'tiny' is in the tables twice"):
        _table.packages(tmp_path)


def test_another_version_or_program_is_another_measurement():
    one = {"name": "tiny", "domain": "made"}
    keys = {_table.Package(**one, version=v, program=p).key for v in ("1.0", "1.1") for p in ("a", "b")}
    assert len(keys) == 4


def test_a_function_that_two_programs_run_is_counted_once():
    rows = [
        row("tiny:A", "wrong silently", finding("wrong silently")),
        row("tiny:B", "a question", finding("a question")),
    ]
    found = _summary.summary(
        [result(*rows), result(rows[0], name="other"), result(name="third", status="not measured")]
    )

    assert (found["counts"]["packages"], found["counts"]["not_measured"], found["counts"]["functions"]) == (2, 1, 2)
    assert found["counts"]["training"] == {"wrong silently": 1, "a question": 1}
    assert found["counts"]["classes"] == {"not classed": 1}


def test_the_first_finding_is_of_the_rank_that_training_has():
    found = _summary.summary(
        [
            result(
                row(
                    "tiny:A",
                    "wrong silently",
                    finding("waste", law="needs_input_grad"),
                    finding("wrong silently"),
                    finding("wrong silently", scope="higher", law="second_order"),
                )
            )
        ]
    )
    (one,) = found["packages"][0]["functions"]
    assert one["first"] == {"laws": ["surrogate"], "says": "it differs", "got": "2", "expected": "1"}


def test_what_is_not_measured_again_stays():
    first = _summary.summary([result(row("tiny:A", "wrong silently", finding("wrong silently")))])
    second = _summary.summary([result(row("other:B", "nothing found"), name="other")], first)

    assert [one["name"] for one in second["packages"]] == ["other", "tiny"]
    assert second["packages"][1] == first["packages"][0]


def test_the_first_run_stays_and_what_changed_is_said():
    first = _summary.summary([result(row("tiny:A", "wrong silently", finding("wrong silently")))])
    second = _summary.summary([result(row("tiny:A", "nothing found"), row("tiny:B", "nothing found"))], first)

    assert second["first_runs"] == first["first_runs"]
    assert [run["training"] for run in second["first_runs"]] == [{"wrong silently": 1}]
    assert _summary.differences(first, second) == [
        "tiny:A: wrong silently, now nothing found",
        "tiny:B: not seen, now nothing found",
    ]


def test_packages_that_come_later_make_a_first_run_of_their_own():
    wrong, later = row("tiny:A", "wrong silently", finding("wrong silently")), row("late:B", "nothing found")
    early = [result(wrong), result(name="late", status="not measured")]
    first = _summary.summary(early, _summary.summary(early))
    second = _summary.summary([result(row("tiny:A", "nothing found")), result(later, name="late")], first)

    assert [run["names"] for run in second["first_runs"]] == [["tiny"], ["late"]]
    assert [run["training"] for run in second["first_runs"]] == [{"wrong silently": 1}, {"nothing found": 1}]


def test_a_summary_whose_counts_are_of_other_rows_is_refused(tmp_path):
    content = _summary.summary([result(row("tiny:A", "nothing found"))])
    path = tmp_path / "campaign.json"
    path.write_text(_summary.summary_text({**content, "counts": {**content["counts"], "functions": 2}}))
    with pytest.raises(_summary.RecordError, match="its counts are not those of its rows"):
        _summary.read_campaign(path)


def test_a_class_says_why(tmp_path):
    path = tmp_path / "classes.toml"
    path.write_text('["tiny:A"]\nclass = "odd"\nwhy = "so"\n')
    with pytest.raises(ValueError, match="tiny:A: write a class, one of wrong, deliberate and documented"):
        _summary.classes(path)


def test_what_is_wrong_says_how_dangerous_it_is(tmp_path):
    path = tmp_path / "classes.toml"
    path.write_text('["tiny:A"]\nclass = "wrong"\nwhy = "so"\n')
    with pytest.raises(ValueError, match="tiny:A: write a danger of what is wrong, one of a wrong direction"):
        _summary.classes(path)


def test_a_finding_names_no_folder_of_the_machine():
    said = "aten.copy_ (/home/me/env/lib/site-packages/tiny/ops.py:33, in forward) of 3/4"
    assert without_paths(said) == "aten.copy_ (tiny/ops.py:33, in forward) of 3/4"


def a_wheel(folder: Path, name: str, module: str) -> None:
    facts = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", module)
        wheel.writestr(f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{facts}/WHEEL", "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{facts}/RECORD", "")


def _running(folder: Path) -> list[str]:
    """Return the command lines of processes that name a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_text(encoding="utf-8").replace("\0", " "))
    return [line for line in found if str(folder) in line]


@pytest.mark.slow
def test_packages_are_installed_run_judged_and_known(tmp_path, monkeypatch):
    wheels, tables, build = (tmp_path / name for name in ("wheels", "tables", "build"))
    wheels.mkdir()
    tables.mkdir()
    a_wheel(wheels, "tiny_wrong", FUNCTION.format(factor=2))
    a_wheel(wheels, "tiny_slow", FUNCTION.format(factor=0.5))
    for name, seconds, sleep in (("tiny_wrong", 300, 0), ("tiny_slow", 20, 1000), ("tiny_missing", 20, 0)):
        (tables / f"{name}.toml").write_text(TABLE.format(name=name, seconds=seconds, sleep=sleep))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    out = tmp_path / "campaign.json"
    words = ["campaign", "--tables", str(tables), "--build", str(build), "--out", str(out)]

    first = CliRunner().invoke(main, words)

    assert first.exit_code == 0, first.output
    kept = {one["name"]: one for one in _summary.read_campaign(out)["packages"]}
    assert kept["tiny_slow"]["why"] == "the program and its audits took more than 20 s"
    assert not _running(build / "tiny_slow")
    assert kept["tiny_missing"]["why"] == "pip: No matching distribution found for tiny_missing==1.0"
    (found,) = kept["tiny_wrong"]["functions"]
    assert (found["function"], found["training"]) == ("tiny_wrong:Halved", "wrong silently")
    assert float(found["first"]["got"]) / float(found["first"]["expected"].split()[0]) == pytest.approx(4)

    result_file = build / "tiny_wrong" / "result.json"
    before = result_file.read_bytes()
    again = CliRunner().invoke(main, [*words, "tiny_wrong"])
    assert "tiny_wrong 1.0: known, 1 functions, 1 wrong in training" in again.output
    assert result_file.read_bytes() == before
    assert json.loads(before)["key"] == _table.packages(tables)[-1].key
    fresh = CliRunner().invoke(main, [*words, "tiny_wrong", "--fresh"])
    assert "tiny_wrong 1.0: 1 functions, 1 wrong in training" in fresh.output
    assert _run.known(_table.packages(tables)[-1], build) is not None
