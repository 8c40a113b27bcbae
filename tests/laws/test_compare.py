"""The comparison that all laws share: the bound of each dtype, and what is said of two values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gradspec.law import Status
from gradspec.laws.tensor.support._compare import compare, compare_all, describe, distance, largest
from gradspec.profile import Profile

TRIAL = SimpleNamespace(profile=Profile(name="test"), spec=SimpleNamespace())
RTOL = TRIAL.profile.rtol
DTYPES = [torch.float64, torch.complex128, torch.float32, torch.complex64, torch.bfloat16, torch.float16]


def off_by(size, dtype, at=1.0, largest=1.0):
    """Return what is found of a value that is off by so much, beside the largest element."""
    expected = torch.tensor([largest, at], dtype=dtype)
    got = expected.clone()
    got[1] += size
    return compare(TRIAL, "value", got, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_element_may_be_off_by_a_few_units_and_no_more(dtype):
    unit = torch.finfo(dtype).eps
    of_itself = RTOL if dtype in (torch.float64, torch.complex128) else 8 * unit
    bound = of_itself + 8 * unit

    assert off_by(bound * 0.9, dtype).status is Status.HOLDS
    assert off_by(-bound * 0.9, dtype).status is Status.HOLDS
    # The next number that the dtype has lies up to a unit further.
    assert off_by(bound * 1.1 + unit, dtype).status is Status.BROKEN


@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_a_small_element_beside_a_large_one_may_be_off_by_units_of_the_large_one(dtype):
    unit = torch.finfo(dtype).eps
    small = 1000 * unit

    assert off_by(7 * unit, dtype, at=small).status is Status.HOLDS
    assert off_by(12 * unit, dtype, at=small).status is Status.BROKEN
    assert off_by(12 * unit, dtype, at=small, largest=2.0).status is Status.HOLDS


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool], ids=str)
def test_integers_must_be_equal(dtype):
    one, other = torch.tensor([1, 0, 0], dtype=dtype), torch.tensor([1, 0, 1], dtype=dtype)

    assert compare(TRIAL, "index", one, one.clone()).status is Status.HOLDS
    found = compare(TRIAL, "index", one, other)
    assert (found.status, found.message) == (Status.BROKEN, "index differs in 1 of 3 elements")
    assert (found.index, found.got, found.expected) == ("[2]", str(one[2].item()), str(other[2].item()))
    assert distance(one, other) == 1.0


@pytest.mark.parametrize(
    ("got", "likely"),
    [([2, 3, 4], "every element is 1 too large"), ([0, 1, 2], "every element is 1 too small"), ([1, 3, 4], "")],
)
def test_integers_that_are_all_off_by_as_much_are_said_to_be(got, likely):
    assert compare(TRIAL, "index", torch.tensor(got), torch.tensor([1, 2, 3])).likely == likely


@pytest.mark.parametrize(
    ("got", "expected", "holds"),
    [
        (torch.nan, torch.nan, True),
        (torch.inf, torch.inf, True),
        (torch.nan, 1.0, False),
        (1.0, torch.nan, False),
        (torch.inf, -torch.inf, False),
        (torch.inf, 1.0, False),
    ],
)
def test_infinities_and_nan_are_equal_to_themselves_alone_and_excuse_no_other_element(got, expected, holds):
    def found(more):
        pair = (torch.tensor([got, 1.0 + more]), torch.tensor([expected, 1.0]))
        return compare(TRIAL, "value", *(side.double() for side in pair)).status is Status.HOLDS

    assert found(0.0) is holds
    assert not found(1e-3)


def test_no_gradient_is_a_zero_one():
    zero, one = torch.zeros(2), torch.ones(2)

    for got, expected in ((None, None), (None, zero), (zero, None), (zero, zero)):
        assert compare(TRIAL, "gradient of `x`", got, expected).status is Status.HOLDS
    missing = compare(TRIAL, "gradient of `x`", None, one, likely="it is detached")
    assert missing.message == "gradient of `x` is None"
    assert (missing.expected, missing.likely) == ("float32[2]", "it is detached")
    assert compare(TRIAL, "gradient of `x`", one, None).status is Status.BROKEN


@pytest.mark.parametrize(("other", "trait"), [(torch.ones(1), "shape"), (torch.ones(2).double(), "dtype")])
def test_another_shape_or_dtype_is_said(other, trait):
    found = compare(TRIAL, "value", torch.ones(2), other)

    assert found.message == f"value has the wrong {trait}"
    assert (found.got, found.expected) in (("[2]", "[1]"), ("float32", "float64"))


def test_the_first_name_that_differs_is_found_with_its_cause():
    got, expected = {"x": torch.ones(2), "y": torch.ones(2)}, {"x": torch.ones(2), "y": torch.zeros(2)}

    found = compare_all(TRIAL, "gradient", got, expected, when="ones", why=lambda name: f"look at {name}")

    assert found.message == "gradient of `y` (ones) differs in 2 of 2 elements"
    assert found.likely == "look at y"
    assert compare_all(TRIAL, "gradient", got, got).status is Status.HOLDS


def test_what_is_shown_of_a_value():
    assert describe(torch.ones(3, 4).double()) == "float64[3, 4]"
    assert describe([torch.ones(1), 2]) == "[float32[1], 2]"
    assert describe((torch.ones(()), "a")) == "(float32[], 'a')"


def test_the_size_and_the_distance_of_tensors():
    assert largest(torch.tensor([-3.0, torch.inf, torch.nan])) == 3.0
    assert largest(torch.tensor([torch.nan])) == 0.0
    assert distance(torch.tensor([1.0, torch.nan]), torch.tensor([3.0, torch.nan])) == 2.0
    assert distance(torch.tensor([1.0]), torch.tensor([torch.nan])) == torch.inf
    assert distance(torch.ones(0), torch.ones(0)) == 0.0


@pytest.mark.parametrize(
    ("got", "expected", "holds"),
    [(56896.0, torch.inf, True), (-torch.inf, -60000.0, True), (100.0, torch.inf, False), (-56896.0, torch.inf, False)],
)
def test_beside_the_largest_number_an_infinity_is_none_of_a_mistake(got, expected, holds):
    values = (torch.tensor([1.0, one], dtype=torch.float16) for one in (got, expected))

    assert (compare(TRIAL, "value", *values).status is Status.HOLDS) == holds
