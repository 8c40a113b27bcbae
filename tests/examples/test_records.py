"""What the tutorials say in words of their recorded runs is so in the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradspec._record import read_experiment

RECORDS = Path(__file__).parents[2] / "docs" / "records" / "examples"


def read(name: str) -> dict[str, Any]:
    return read_experiment(RECORDS / f"{name}.json")


def runs(record: dict[str, Any], figure: str, label: str) -> list[list[float]]:
    (line,) = [line for line in record["figures"][figure]["lines"] if line["label"] == label]
    found: list[list[float]] = line["runs"]
    return found


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_record_says_when_where_and_by_what_it_was_made(path: Path) -> None:
    record = read(path.stem)
    command = f"python docs/examples/{path.stem}.py --out docs/records/examples/{path.name}"
    assert record["provenance"]["command"] == command, "the page tells the reader to run this"
    assert record["provenance"]["commit"]
    assert not record["provenance"]["commit"].endswith("+"), "made of a source that was not committed"
    assert len(record["provenance"]["seeds"]) == 5
    assert "/" not in " ".join(str(value) for key, value in record["provenance"].items() if key != "command")


class TestShakeDigits:
    record = read("shake_digits")

    def test_shaking_is_behind_at_first(self) -> None:
        first = {mode: _mean([run[1] for run in runs(self.record, "train_error", mode)]) for mode in MODES}
        assert min(first["shake-keep"], first["shake-shake"]) > first["even-even"]

    def test_every_network_learns_every_training_image(self) -> None:
        assert {run[-1] for mode in MODES for run in runs(self.record, "train_error", mode)} == {0.0}

    def test_shaking_is_never_worse_in_the_end_and_not_always_better(self) -> None:
        pairs = self.pairs("test_error")
        assert all(shake <= even for even, shake in pairs)
        assert any(shake == even for even, shake in pairs)

    def test_the_ranges_overlap_and_the_difference_is_of_three_or_four_images(self) -> None:
        even, shake = zip(*self.pairs("test_error"), strict=True)
        assert max(shake) > min(even)
        assert 3 <= 797 * (_mean(even) - _mean(shake)) <= 4

    def test_the_training_loss_is_about_twice_as_high_and_the_test_loss_is_not(self) -> None:
        even, shake = map(_mean, zip(*self.pairs("train_loss"), strict=True))
        assert 1.75 < shake / even < 2.25
        even, shake = map(_mean, zip(*self.pairs("test_loss"), strict=True))
        assert shake < even

    def test_the_passes_are_a_thirtieth_of_the_papers(self) -> None:
        assert 30 * self.record["settings"]["epochs"] == 1800

    def pairs(self, figure: str) -> list[tuple[float, float]]:
        """Return the last values of even-even and of shake-shake, for each seed."""
        even, shake = ([run[-1] for run in runs(self.record, figure, mode)] for mode in ("even-even", "shake-shake"))
        return list(zip(even, shake, strict=True))


class TestInstanceDiscrimination:
    record = read("instance_discrimination")

    def test_with_200_neighbours_the_mean_and_most_seeds_beat_the_pixels(self) -> None:
        raw, last = self.of(200)
        assert _mean(last) > raw
        assert len(last) / 2 < sum(value > raw for value in last) < len(last)

    def test_training_gains_much_over_the_untrained_network(self) -> None:
        numbers = self.record["numbers"]["k200"]
        assert numbers["embedding"]["low"] > numbers["untrained"]["high"] + 0.1

    def test_with_five_neighbours_the_pixels_are_ahead(self) -> None:
        raw, last = self.of(5)
        assert _mean(last) < raw

    def test_the_best_of_both_are_a_few_images_apart(self) -> None:
        best_raw = max(self.of(k)[0] for k in (5, 20, 200))
        best = max(_mean(self.of(k)[1]) for k in (5, 20, 200))
        assert abs(best_raw - best) < 4 / 797

    def test_far_neighbours_are_as_good_as_near_ones_and_pixels_grow_worse(self) -> None:
        raw = [self.of(k)[0] for k in (5, 20, 200)]
        mean = [_mean(self.of(k)[1]) for k in (5, 20, 200)]
        assert raw == sorted(raw, reverse=True)
        assert mean[2] >= mean[0]

    def of(self, k: int) -> tuple[float, list[float]]:
        """Return the accuracy of the pixels, and that of each seed in the end."""
        last = [run[-1] for run in runs(self.record, f"accuracy_k{k}", "embedding")]
        return self.record["numbers"][f"k{k}"]["raw"], last


MODES = ("even-even", "shake-keep", "shake-shake")


def _mean(values: Any) -> float:
    found = list(values)
    return sum(found) / len(found)
