"""Under autocast an element that is off by little is waste only where all elements are less accurate together."""

from __future__ import annotations

import pytest
import torch

from gradspec.law import HOLDS, Rank
from gradspec.laws.tensor._autocast import _judge


@pytest.mark.parametrize(("times", "rank"), [(1, None), (1.5, None), (4, Rank.WASTE), (100, Rank.WRONG)])
def test_one_element_that_plain_operations_happen_to_hit_is_no_waste(times, rank):
    right = torch.linspace(-1, 1, 40, dtype=torch.float64)
    error = 1e-3 * torch.sin(torch.arange(40, dtype=torch.float64))  # the first is exact
    plain, got = right + error, right + times * error.roll(1)
    finding = _judge("gradient of `x`", got.float(), plain.float(), right, 2**-24)

    assert finding is HOLDS if rank is None else finding.rank == rank
