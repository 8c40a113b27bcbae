"""A run under many seeds goes on from an earlier one, and comes to what a fresh one comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradspec._engine._child import available
from gradspec_lab.selftest import _under_seeds
from gradspec_lab.selftest._seeds_record import Seeds, read_seeds
from gradspec_lab.selftest._seeds_run import seeds

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no fork on this machine")]
NAMES = ("cube_once", "echo", "off_by_a_millionth")
COUNT = 1


def run(known: Seeds | None = None, **how) -> tuple[Seeds, list[str]]:
    asked: list[str] = []
    found = seeds(how.pop("count", COUNT), NAMES, known=known, progress=lambda *said: asked.append(said[2]), **how)
    return found, asked


@pytest.fixture(scope="module")
def fresh() -> Seeds:
    found, _ = run()
    assert found.measured == len(found.rows) == 4
    return found


def test_a_run_of_other_files_is_not_gone_on_from(fresh: Seeds) -> None:
    found, _ = run(replace(fresh, provenance={**fresh.provenance, "files": "of another tree"}))

    assert found.measured == len(fresh.rows)


def test_nothing_is_measured_where_nothing_has_changed(fresh: Seeds) -> None:
    found, asked = run(fresh)

    assert (found.measured, asked) == (0, [])
    assert (found.swept, found.rows) == (fresh.swept, fresh.rows)


def test_other_seeds_are_another_run(fresh: Seeds) -> None:
    found, _ = run(fresh, count=2)

    assert (found.swept["run"], found.measured) == (2, len(fresh.rows))


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
