"""How a proposal writes its cases: an expression that makes each argument again."""

from __future__ import annotations

import pytest
import torch

from gradspec import Case, read_case
from gradspec._audit._case_text import argument_text, case_text


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
        (torch.ones(30, 40), "make(30, 40, dtype=torch.float32)"),
        (torch.ones(30, 40, dtype=torch.bool), "make(30, 40, dtype=torch.bool)"),
        (torch.full((30, 40), -1), "make(30, 40, dtype=torch.int64)"),
        (torch.full((30, 40), 6), "make(30, 40, dtype=torch.int64).remainder(7)"),
        (torch.tensor([torch.nan, 1.0]), "make(2, dtype=torch.float32)"),
    ],
    ids=str,
)
def test_an_argument_is_written_out_or_drawn_anew_where_it_is_large(value, text):
    assert argument_text(value) == text


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
