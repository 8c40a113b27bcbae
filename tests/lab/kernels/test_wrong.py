"""Each wrong kernel is wrong where it is said to be, and nowhere on friendly arguments; its twin is right."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from gradspec_lab.kernels._kernel import Kernel, derive, random_cotangents
from gradspec_lab.kernels._truth import distance, distances
from gradspec_lab.kernels.wrong import PAIRS, Pair

EVERY_PAIR = pytest.mark.parametrize("pair", [pytest.param(pair, id=name) for name, pair in PAIRS.items()])
#: How far apart the order of sums may put two sound results.
ROUNDING = {torch.float64: 1e-8, torch.float32: 3e-4, torch.bfloat16: 4 * torch.finfo(torch.bfloat16).eps}


def test_every_defect_is_in_two_kernels_at_least() -> None:
    kernels = Counter(pair.number for pair in PAIRS.values())
    assert sorted(kernels) == list(range(1, 14))
    assert min(kernels.values()) >= 2
    assert len({pair.name for pair in PAIRS.values()}) == len(PAIRS)


@EVERY_PAIR
def test_revealing_arguments_show_the_defect_and_nothing_else(pair: Pair) -> None:
    wrong, twin = distances(pair, pair.revealing, pair.shown_in)
    assert max(twin.values()) < ROUNDING[pair.shown_in]
    assert {place for place, far in wrong.items() if far > 5 * ROUNDING[pair.shown_in] and far > 1e-4} == {*pair.where}


@EVERY_PAIR
def test_friendly_arguments_hide_it(pair: Pair) -> None:
    for told in distances(pair, pair.friendly, pair.hidden_in):
        assert max(told.values()) < ROUNDING[pair.hidden_in]


TWINS = {pair.twin.name: pair.twin for pair in PAIRS.values()}


@pytest.mark.parametrize("twin", [pytest.param(twin, id=name) for name, twin in TWINS.items()])
def test_a_twin_is_right_on_every_shape_and_scale(twin: Kernel) -> None:
    for shape in twin.shapes:
        for scale in twin.scales:
            args = twin.make(shape, torch.float64, scale, torch.Generator().manual_seed(1))
            result, exact = (
                derive(function, twin, args, random_cotangents(torch.Generator().manual_seed(2)))
                for function in (twin.call, twin.reference)
            )
            far = {place: distance(result[place], exact[place]) for place in exact}
            size = max(value.abs().max().item() for value in exact.values())
            assert {
                place: gap for place, gap in far.items() if gap > 1e-8 and exact[place].abs().max() > 1e-8 * size
            } == {}


def test_a_cache_by_address_hides_from_calls_with_memory_of_their_own() -> None:
    for pair in PAIRS.values():
        if pair.number == 13:
            for seed in range(20):
                wrong, _ = distances(pair, pair.friendly, torch.float32, seed)
                assert max(wrong.values()) < ROUNDING[torch.float32]
