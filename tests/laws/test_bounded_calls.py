"""A call in lower precision takes no more than some times the operations of the one in float64."""

import pytest
import torch

from gradspec.laws.tensor.support._bounded import Bounded, bound_by


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


def test_nothing_is_computed_with_a_result_that_is_too_large():
    bounded = Bounded(most_elements=100)

    with bounded, pytest.raises(RuntimeError, match="too large"):
        torch.ones(50).repeat(3).cos()
    assert (bounded.count, bounded.elements) == (3, 150)


def test_the_memory_of_a_result_that_is_too_large_is_not_asked_for():
    bounded = Bounded(most_elements=100)

    with bounded, pytest.raises(RuntimeError, match="too large"):
        torch.arange(10**15)
    assert bounded.elements == 10**15
