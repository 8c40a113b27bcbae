"""The runner: what it measures, what it writes, and that it goes on from where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from gradspec_lab.kernels import _run
from gradspec_lab.kernels.__main__ import main
from gradspec_lab.kernels._judges import JUDGES
from gradspec_lab.kernels._kernel import Measured, at_stored, stored

CALLS: list[Measured] = []


def accuser(kernel: Measured, args: object, cotangents: object) -> dict[str, tuple[bool, str]]:
    CALLS.append(kernel)
    return dict.fromkeys(kernel.exact, (False, "all are guilty"))


def fails(kernel: Measured, args: object, cotangents: object) -> dict[str, tuple[bool, str]]:
    raise ValueError("no opinion")


def run(out: Path, *options: str) -> str:
    result = CliRunner().invoke(main, ["run", "--out", str(out), "--case", "wrong", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_every_judge_speaks_of_each_output_and_gradient(tmp_path: Path) -> None:
    run(tmp_path / "out.jsonl", "--runs", "1", "--only", "linear: tail of the sum dropped")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["case"] for line in lines] == ["friendly", "revealing", "twin"]
    for line in lines:
        assert {*line["judges"]} == {*JUDGES}
        for told in line["judges"].values():
            assert {*told["verdicts"]} == {"output", "dx", "dw"}
    revealing = lines[1]["judges"]["two_times"]["verdicts"]
    assert [revealing[place][0] for place in ("output", "dx", "dw")] == [False, True, True]


def test_a_second_run_calls_nothing_again_and_a_torn_line_is_done_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    first = run(out, "--runs", "2", "--only", "segment_sum: summed")
    text = out.read_text()
    assert len(text.splitlines()) == 6
    out.write_text(text[: text.rindex("\n", 0, -1) + 20])
    assert len(_run.read(out)) == 5
    run(out, "--runs", "2", "--only", "segment_sum: summed")
    assert len(_run.read(out)) == 6
    monkeypatch.setattr(_run, "judged", None)
    assert run(out, "--runs", "2", "--only", "segment_sum: summed").count("segment_sum") == first.count("segment_sum")


def test_a_new_judge_is_asked_of_runs_that_are_there(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run(out, "--runs", "1", "--only", "softmax: padding")
    CALLS.clear()
    run(out, "--runs", "1", "--only", "softmax: padding", "--judge", f"{__name__}:accuser")
    assert len(CALLS) == 3
    assert {*next(iter(_run.read(out).values()))["judges"]} == {*JUDGES, "accuser"}


def test_a_judge_that_raises_is_counted_apart(tmp_path: Path) -> None:
    told = run(tmp_path / "out.jsonl", "--runs", "1", "--only", "softmax: padding", "--judge", f"{__name__}:fails")
    assert "0 (1 without)" in told


def test_a_kernel_that_dies_has_a_line_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(_run, "results", dies)
    told = run(tmp_path / "out.jsonl", "--runs", "1", "--only", "softmax: padding")
    assert told.count("did not run") == 3
    assert "illegal memory access" in told


def test_runs_of_one_number_are_equal_bit_for_bit() -> None:
    def results() -> list[torch.Tensor]:
        CALLS.clear()
        for one in _run.plan(2, "rms_norm: projection", ("wrong",)):
            _run.judged(one, {"accuser": accuser})
        return [value for kernel in CALLS for value in (*kernel.results.values(), *kernel.exact.values())]

    assert all(torch.equal(a, b) for a, b in zip(results(), results(), strict=True))


def test_a_race_gives_the_judge_results_that_differ() -> None:
    CALLS.clear()
    revealing = next(one for one in _run.plan(1, "linear: race", ("wrong",)) if one.case == "revealing")
    _run.judged(revealing, {"accuser": accuser})
    (kernel,) = CALLS
    several = [kernel.results["output"], *(results["output"] for results in kernel.again)]
    assert len(several) == 4
    assert any(not torch.equal(several[0], other) for other in several[1:])


def test_a_place_that_is_stored_can_be_rounded_and_so_can_the_gradient_at_it() -> None:
    seen = []

    def hook(place: str, value: torch.Tensor) -> torch.Tensor:
        seen.append(place)
        return value * 2

    x = torch.ones(2, requires_grad=True)
    with at_stored(hook):
        (stored("P", x) * 3).sum().backward()
    assert seen == ["P", "dP"]
    assert x.grad is not None
    assert x.grad.tolist() == [12, 12]
    assert torch.equal(stored("P", x), x)
