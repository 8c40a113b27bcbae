"""A run under many seeds goes on from an earlier one, and comes to what a fresh one comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gradspec._engine._child import available
from gradspec_lab.selftest import _seeds_run, _under_seeds
from gradspec_lab.selftest._seeds_record import Seeds, read_seeds
from gradspec_lab.selftest._seeds_run import seeds
from gradspec_lab.selftest._standing import sources_of_seeds

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no fork on this machine")]
NAMES = ("cube_once", "echo", "off_by_a_millionth")
COUNT = 1


def run(known: Seeds | None = None, **how) -> tuple[Seeds, list[str]]:
    asked: list[str] = []
    found = seeds(how.pop("count", COUNT), NAMES, known=known, progress=lambda *said: asked.append(said[2]), **how)
    return found, asked


@pytest.fixture(scope="module", autouse=True)
def sources_once() -> Iterator[None]:
    """Have the sources of the tree hashed once: no test edits it."""
    today = sources_of_seeds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_seeds_run, "sources_of_seeds", lambda: today)
        yield


@pytest.fixture(scope="module")
def fresh() -> Seeds:
    found, _ = run()
    assert found.measured == len(found.rows) == 4
    return found


def moved(known: Seeds, *names: str) -> Seeds:
    """Return a run as if some sources had been others when it was made."""
    return replace(known, sources={**known.sources, **{n: replace(known.sources[n], key="x") for n in names}})


def test_nothing_is_measured_where_nothing_has_changed(fresh: Seeds) -> None:
    found, asked = run(fresh)

    assert (found.measured, asked) == (0, [])
    assert (found.swept, found.rows) == (fresh.swept, fresh.rows)
    assert found.provenance["reused from"] == fresh.provenance["date"]


def test_a_law_that_has_changed_is_asked_again_with_those_that_it_requires(fresh: Seeds) -> None:
    found, asked = run(moved(fresh, "law vjp"))

    laws = {words.split(" · ")[1] for words in asked}
    assert {"vjp", "primal"} <= laws
    assert "inputs_untouched" not in laws
    assert (found.swept, found.rows) == (fresh.swept, fresh.rows)


def test_what_a_law_said_before_it_changed_is_forgotten_and_what_the_others_said_is_not(fresh: Seeds) -> None:
    said = [[0, "vjp", "was off"], [0, "scalar", "is off"]]
    rows = tuple({**row, "failures": said} if row.get("spec") == "cube_once" else row for row in fresh.rows)
    found, _ = run(replace(moved(fresh, "law vjp"), rows=rows))

    cases = [row["case"] for row in rows if row.get("spec") == "cube_once"]
    assert found.swept["failures"] == [f"seed 0: cube_once · scalar · {case}: is off" for case in cases]


def test_a_spec_that_has_changed_is_measured_again_alone(fresh: Seeds) -> None:
    found, asked = run(moved(fresh, "spec echo"))

    assert {words.split(" · ")[0] for words in asked} == {"echo"}
    assert (found.swept, found.rows) == (fresh.swept, fresh.rows)


@pytest.mark.parametrize(("source", "of_how_many"), [("sweep", 4), ("harness function", 3), ("harness text", 1)])
def test_all_is_measured_again_where_what_runs_it_has_changed(fresh: Seeds, source: str, of_how_many: int) -> None:
    found, _ = run(moved(fresh, source))

    assert found.measured == of_how_many


def test_other_seeds_are_another_run(fresh: Seeds) -> None:
    found, _ = run(fresh, count=2)

    assert (found.swept["run"], found.measured) == (2, len(fresh.rows))
    assert "reused from" not in found.provenance


def test_a_run_whose_time_is_up_is_continued(fresh: Seeds) -> None:
    begun, _ = run(minutes=0, jobs=1)
    found, _ = run(begun)

    assert 0 < len(begun.rows) < len(fresh.rows)
    assert begun.swept["tried"] < begun.swept["cases"]
    assert found.measured == len(fresh.rows) - len(begun.rows)
    assert (found.swept, found.rows) == (fresh.swept, fresh.rows)


def test_what_has_been_measured_is_saved_on_the_way(fresh: Seeds, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_under_seeds, "BETWEEN", 0.0)
    saved: list[Seeds] = []
    path = tmp_path / "seeds.json"

    def save(so_far: Seeds) -> None:
        path.write_text(so_far.to_json(), encoding="utf-8")
        saved.append(read_seeds(path))

    run(save=save)

    counts = [len(one.rows) for one in saved]
    assert counts == sorted(counts)
    assert set(counts) & set(range(1, len(fresh.rows)))
    assert run(saved[-1])[0].rows == fresh.rows
