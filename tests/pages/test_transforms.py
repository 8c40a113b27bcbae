"""The table of the page on transforms is what torch does to the classes of that page, cell by cell."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from gradspec_lab.versions.transforms import PAGE, TRANSFORMS, X, classes_of_the_page, compiled, outcome


def table() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the classes, and the cells of the page by transform."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]
    head, _, *body = rows
    return [name.strip("`") for name in head[1:]], {row[0]: row[1:] for row in body}


@pytest.fixture(scope="module")
def classes() -> dict[str, Any]:
    return classes_of_the_page()


def test_the_table_has_a_row_for_each_transform() -> None:
    assert list(table()[1]) == list(TRANSFORMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_row_of_the_table_is_what_torch_does(name: str, classes: dict[str, Any]) -> None:
    columns, rows = table()
    assert [outcome(TRANSFORMS[name], classes[column]) for column in columns] == rows[name]


def test_a_vmap_or_a_gradient_of_a_compiled_function_is_refused_for_every_function() -> None:
    torch._dynamo.reset()
    for transform in (torch.vmap, torch.func.grad):
        with pytest.raises(RuntimeError, match=r"functorch|torch\.compile|torch\.func"):
            transform(compiled(lambda x: (x * x).sum()))(X)
