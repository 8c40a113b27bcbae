"""What CI measures afresh finds what a summary says otherwise, by name."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gradspec.law import Status, broken
from gradspec_lab._summary import read_summary, summary_text
from gradspec_lab.evidence import _changed, sample
from gradspec_lab.selftest._record import read_matrix

KILLS, PEERS = read_matrix(sample.KILLS), read_summary(sample.PEERS)


def test_the_summaries_are_of_what_there_is_today() -> None:
    assert list(sample.not_the_population(KILLS)) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [("off_by_a_millionth", "is not in the summary"), ("GradFactor.sign_flipped", "is not in the summary")],
)
def test_a_subject_that_was_taken_out_is_named(name: str, said: str) -> None:
    left = replace(KILLS, subjects=tuple(one for one in KILLS.subjects if one.name != name))
    assert [line for line in sample.not_the_population(left) if name in line and said in line] != []


def test_a_survivor_that_is_said_to_be_killed_is_named() -> None:
    alive = next(one for one in KILLS.of("mutant") if not one.is_killed)
    subjects = tuple(replace(one, killed_by=("vjp",)) if one is alive else one for one in KILLS.subjects)
    (line,) = sample.not_the_population(replace(KILLS, subjects=subjects))
    assert line == f"kills: {alive.name} is killed, and has a proof that nothing can tell"


@pytest.mark.slow
def test_a_kill_that_is_none_any_more_is_named() -> None:
    (one,) = (one for one in KILLS.subjects if one.name == "GradFactor.sign_flipped")
    other = replace(KILLS, subjects=(replace(one, killed_by=(*one.killed_by, "export")),))
    said: list[str] = []
    (line,) = sample.of_kills(other, [one.name], 60, said.append)
    assert line == "kills: GradFactor.sign_flipped is no more killed by export (the summary says otherwise)"
    assert said == ["kills: 1 of 1 subjects measured"]


@pytest.mark.slow
def test_what_the_time_does_not_allow_is_left_out_and_named() -> None:
    said: list[str] = []
    names = ["GradFactor.sign_flipped", "GradMultiply.sign_flipped", "ShakeShake.sign_flipped"]
    assert list(sample.of_kills(KILLS, names, 0, said.append)) == []
    assert said[-1] == "kills: left out 2: GradMultiply.sign_flipped, ShakeShake.sign_flipped"


@pytest.mark.slow
def test_an_exception_of_a_published_class_is_among_what_ten_seeds_draw_whether_or_not_the_summary_has_it() -> None:
    cheap = {law.name for law in sample.LAWS if law.cost == "ms"}
    odd = sorted({(v.spec, v.law) for v in PEERS.verdicts if v.status.is_failure and v.law in cheap})
    found = 0
    for spec, law in odd:
        holding = tuple(
            replace(v, finding=replace(v.finding, status=Status.HOLDS)) if (v.spec, v.law) == (spec, law) else v
            for v in PEERS.verdicts
        )
        without = replace(PEERS, verdicts=holding)
        drawn = (sample.drawn_cells(without, 400, random.Random(seed)) for seed in range(10))
        found += any((spec, law) == cell[:2] for cells in drawn for cell in cells)
    assert found >= 0.95 * len(odd)


@pytest.mark.skipif(not sample.SITE.exists(), reason="the published packages are not installed")
def test_an_exception_that_was_taken_out_is_found_within_ten_seeds() -> None:
    spec, law = "torchlogix.functional.GradFactor", "vmap"
    kept = tuple(v for v in PEERS.verdicts if (v.spec, v.law) != (spec, law))
    lines = list(sample.not_planned(replace(PEERS, verdicts=kept), sample.SITE))
    assert f"peers: {spec} · {law} · factor 0.1 is not in the summary" in lines
    holding = tuple(
        replace(v, finding=replace(v.finding, status=Status.HOLDS, message="")) if (v.spec, v.law) == (spec, law) else v
        for v in PEERS.verdicts
    )
    without = replace(PEERS, verdicts=holding)
    cells = [cell for cell in sample.drawn_cells(without, 400, random.Random(0)) if cell[0] == spec and cell[1] == law]
    for seed in range(1, 10):
        drawn = sample.drawn_cells(without, 400, random.Random(seed))
        cells = cells or [cell for cell in drawn if cell[:2] == (spec, law)]
    assert cells
    assert [line for line in sample.of_peers(without, cells, sample.SITE) if f"{law} · {cells[0][2]} was holds" in line]


def test_what_was_not_measured_for_a_summary_may_be_today(monkeypatch: pytest.MonkeyPatch) -> None:
    late = next(v for v in PEERS.verdicts if v.status is Status.NOT_MEASURED)
    held = next(v for v in PEERS.verdicts if v.status is Status.HOLDS)
    other = replace(PEERS, verdicts=tuple(replace(v, finding=broken("another")) for v in (late, held)))
    monkeypatch.setattr("gradspec_lab.peers.record.measured", lambda site, only: other)
    (line,) = sample.of_peers(PEERS, [late.cell, held.cell], sample.SITE)
    assert " · ".join(held.cell) in line


def test_a_summary_says_again_what_it_was_read_from() -> None:
    assert summary_text(PEERS) == sample.PEERS.read_text(encoding="utf-8")


def test_an_edit_of_a_law_touches_it_and_an_edit_of_a_helper_touches_more() -> None:
    laws, specs = sample.homes()
    assert list(_changed.touched(laws, ["src/gradspec/laws/tensor/_global_state.py"])) == ["global_state"]
    assert list(_changed.touched(laws, ["src/gradspec/laws/tensor/_vjp.py"])) == [
        "vjp",
        "declared_draws",
    ]
    helper = list(_changed.touched(laws, ["src/gradspec/laws/tensor/support/_compare.py"]))
    assert "vjp" in helper
    assert len(helper) > 10
    assert list(_changed.touched(specs, ["src/gradspec/functions/_shake_shake/_function.py"])) != []
    assert list(_changed.touched(laws, ["docs/index.md"])) == []
