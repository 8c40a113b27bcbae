"""Two real ranks find what the simulated ones find: the law `sharded` rests on no quirk of the simulation."""

from __future__ import annotations

import re

import pytest

from distributed.placed_calls import found_on
from distributed.pool import Pool
from gradspec.laws.tensor.support._ranks import simulated_mesh
from gradspec_lab.specimens import DISEASED

SOUND = ("grad_factor", "scale_of_rows", "scale_of_shards", "product_of_rows", "columns")
SICK = ("drops_a_pending_sum", "takes_a_part_for_the_sum", "counts_a_pending_sum_twice", "mixes_tensors_silently")


@pytest.mark.parametrize("name", [*SOUND, *SICK])
@pytest.mark.slow
def test_two_real_ranks_find_what_simulated_ones_find(two: Pool, name: str) -> None:
    with simulated_mesh("cpu") as mesh:
        simulated = found_on(mesh, name)
    real = two.run(found_on, name)

    statuses = {case: status for case, (status, _) in simulated.items()}
    assert [{case: status for case, (status, _) in rank.items()} for rank in real] == [statuses] * 2
    assert real[0] == simulated  # the simulation speaks of the first rank that is wrong
    said = [message for status, message in simulated.values() if status == "broken"]
    expected = [DISEASED[name].caught_by["sharded"]] if name in SICK else []
    assert [words for words in expected if any(re.search(words, message) for message in said)] == expected
    assert bool(said) == (name in SICK)
