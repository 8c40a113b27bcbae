"""A call in lower precision takes no more than some times the operations of the one in float64."""

import pytest
import torch

from gradspec.laws.tensor.support._bounded import bound_by


def endless(x: torch.Tensor) -> None:
    while True:
        x = x + 1


def test_a_loop_without_an_end_ends():
    x = torch.ones(2)
    bounded = bound_by(lambda: x + x * x)()

    with bounded, pytest.raises(RuntimeError, match="more than 30000 operations, where the call takes 2 in its own"):
        endless(x)
    assert bounded.is_over


def test_a_call_that_raises_bounds_nothing():
    with bound_by(lambda: torch.ones(2) @ torch.ones(3))() as bounded:
        assert torch.equal(sum(torch.ones(1) for _ in range(40)), torch.tensor([40.0]))
    assert bounded is None
