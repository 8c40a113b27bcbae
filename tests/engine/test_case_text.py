"""How a proposal writes its cases: an expression that makes each argument again."""

from __future__ import annotations

import pytest
import torch

from gradspec import Case, read_case
from gradspec._audit._case_text import argument_text, case_text, why_inexact
from gradspec.spec._maker import Maker

MANY = torch.arange(1200).view(30, 40)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.5, "2.5"),
        ("mean", "'mean'"),
        ([1, None], "[1, None]"),
        ((1,), "(1,)"),
        ((1, "a"), "(1, 'a')"),
        ({"dim": [0]}, "{'dim': [0]}"),
        (torch.tensor([1, 2]), "torch.tensor([1, 2], dtype=torch.int64)"),
        (torch.ones(0, 3, dtype=torch.float64), "make(0, 3)"),
        (torch.ones(30, 40), "torch.full((30, 40), 1.0, dtype=torch.float32)"),
        (torch.ones(30, 40, dtype=torch.bool), "torch.full((30, 40), True, dtype=torch.bool)"),
        (torch.full((30, 40), -1), "torch.full((30, 40), -1, dtype=torch.int64)"),
        (
            torch.tensor([torch.nan, 1.0, -torch.inf]),
            "torch.tensor([float('nan'), 1.0, float('-inf')], dtype=torch.float32)",
        ),
        (torch.tensor([1 + 2j]), "torch.tensor([complex(1.0, 2.0)], dtype=torch.complex64)"),
        (float("inf"), "float('inf')"),
        (torch.float16, "torch.float16"),
        (torch.device("cpu"), "torch.device('cpu')"),
    ],
    ids=str,
)
def test_an_argument_is_written_so_that_it_is_the_same(value, text):
    assert argument_text(value) == text
    assert not why_inexact(value)
    again = eval(text, {"torch": torch, "make": lambda *shape: torch.zeros(*shape, dtype=torch.float64)})
    if isinstance(value, torch.Tensor):
        assert torch.equal(value.nan_to_num(), again.nan_to_num())
        assert value.dtype is again.dtype
    else:
        assert again == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MANY - 600.0, "make(30, 40, dtype=torch.float32)"),
        (MANY % 7, "make(30, 40, dtype=torch.int64, low=0, high=6)"),
        (MANY % 3 - 2, "make(30, 40, dtype=torch.int64, low=-2, high=0)"),
        (MANY % 2 > 0, "make(30, 40, dtype=torch.bool)"),
        (MANY / 1199, "(make(30, 40, dtype=torch.float32).sigmoid() * 1 + 0)"),
        (MANY.double() + 2, "(make(30, 40).sigmoid() * 1199 + 2)"),
    ],
    ids=str,
)
def test_a_large_tensor_is_drawn_anew_within_the_numbers_that_were_given(value, text):
    assert argument_text(value) == text
    assert why_inexact([1, {"a": (value,)}]) == "drawn anew"
    again = eval(text, {"torch": torch, "make": Maker(0, "cpu")})
    assert (again.shape, again.dtype) == (value.shape, value.dtype)
    if value.dtype is not torch.bool:
        assert float(value.min()) <= float(again.min()) <= float(again.max()) <= float(value.max())


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "of object, and not written"),
        (torch.eye(2).to_sparse(), "of Tensor, and not written"),
        (torch.eye(3)[:, :2], "written as a contiguous tensor"),
    ],
    ids=["object", "sparse", "transposed"],
)
def test_a_value_that_no_expression_makes_is_named(value, why):
    assert why_inexact(value) == why
    assert compile(argument_text(value), "it", "eval")


def test_a_case_that_was_not_written_is_written_by_its_arguments():
    case = Case(name="rows", args=(torch.ones(2), 3), kwargs={"dim": 0})

    text = case_text(case, {})

    assert text == ("Case(name='rows', args=(torch.tensor([1.0, 1.0], dtype=torch.float32), 3), kwargs={'dim': 0})")
    again = eval(text, {"Case": Case, "torch": torch})
    assert (again.name, again.args[1], again.kwargs) == ("rows", 3, {"dim": 0})


@pytest.mark.parametrize(
    ("seed", "dtype", "text"),
    [
        (0, None, "read_case('(randn(2), 3)')"),
        (7, None, "read_case('(randn(2), 3)', seed=7)"),
        (0, torch.float32, None),
    ],
)
def test_a_case_that_was_written_is_read_again(seed, dtype, text):
    written = "(randn(2), 3)"
    case = read_case(written)

    made = case_text(case, {case.name: written}, seed=seed, dtype=dtype)

    assert text is None or made == text
    again = eval(made, {"read_case": read_case})
    assert again.args[0].dtype is (dtype or case.args[0].dtype)
    assert again.args[1] == 3
