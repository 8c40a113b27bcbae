"""Ticks are round numbers that enclose what is shown, few enough to be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec_lab.sphinx.drawing._plot_record import Axis
from gradspec_lab.sphinx.drawing._plot_scale import scale, tick_label

LINEAR, LOG = Axis(label="x"), Axis(label="x", scale="log")


@pytest.mark.parametrize(
    ("axis", "values", "ticks"),
    [
        (LINEAR, (0.0, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (LINEAR, (0.013, 0.071), (0.0, 0.02, 0.04, 0.06, 0.08)),
        (LINEAR, (1, 60), (0, 20, 40, 60)),
        (LINEAR, (3, 3), (1, 2, 3, 4, 5)),
        (LOG, (0.03, 2.0), (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)),
        (LOG, (1e-8, 1.0), (1e-8, 1e-6, 1e-4, 1e-2, 1.0)),
        (LOG, (5.0, 5.0), (2.0, 5.0, 10.0)),
    ],
)
def test_ticks(axis: Axis, values: tuple[float, ...], ticks: tuple[float, ...]) -> None:
    assert scale(axis, values, snug=False).ticks == pytest.approx(ticks)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5), st.sampled_from([LINEAR, LOG]), st.booleans())
def test_every_value_falls_inside_and_ticks_are_few(values: list[float], axis: Axis, snug: bool) -> None:
    made = scale(axis, values, snug=snug)
    assert all(-1e-6 <= made(value) <= 1 + 1e-6 for value in values)
    assert len(made.ticks) <= 9
    assert list(made.ticks) == sorted(set(made.ticks))
    if not snug:
        assert len(made.ticks) >= 2


def test_a_tick_of_a_share_is_in_per_cent() -> None:
    assert tick_label(0.2, Axis(label="x", format=".1%")) == "20%"
    assert tick_label(0.025, Axis(label="x", format=".1%")) == "2.5%"
    assert tick_label(1000, LINEAR) == "1000"
