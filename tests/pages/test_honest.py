"""The table of gradients that are not the derivative names functions, and calls honest just those that are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor

from gradspec import Case, FunctionSpec
from gradspec.functions import FUNCTIONS
from gradspec.spec._maker import Maker
from pages.blocks import DOCS

PAGE = DOCS / "explanation" / "why-a-backward-may-not-be-the-derivative.md"


@cache
def rows() -> dict[str, tuple[str, str]]:
    """Return, by the name of the page that a row links, what its second and third column say."""
    found: dict[str, tuple[str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ["):
            names, forward, backward = (cell.strip() for cell in line.split("|")[1:4])
            found |= dict.fromkeys(re.findall(r"\(\.\./functions/(\w+)\.md\)", names), (forward, backward))
    return found


def derivative(spec: FunctionSpec, promise: Callable[..., Tensor], case: Case) -> tuple[Tensor, ...]:
    """Return the gradients of one of the maps of a spec, for a cotangent in which no two numbers are the same."""
    given = inspect.signature(promise).bind(*case.args, **case.kwargs)
    given.apply_defaults()
    leaves = {
        name: value.detach().clone().requires_grad_()
        for name, value in given.arguments.items()
        if name in spec.wrt and isinstance(value, Tensor)
    }
    out = promise(**{**given.arguments, **leaves})
    cotangent = torch.arange(1, out.numel() + 1, dtype=out.dtype).reshape(out.shape)
    return torch.autograd.grad(out, tuple(leaves.values()), cotangent)


def is_honest(spec: FunctionSpec) -> bool:
    """Return whether backward applies the derivative of what forward computes, in every case of a spec."""
    return all(
        torch.allclose(one, other)
        for case in spec.cases(Maker(0, "cpu"))
        for one, other in zip(derivative(spec, spec.primal, case), derivative(spec, spec.surrogate, case), strict=True)
    )


@pytest.mark.parametrize("name", rows())
def test_the_table_calls_honest_what_is(name: str) -> None:
    (spec,) = (spec for spec in FUNCTIONS if spec.name == name)
    assert (rows()[name][1] == "the same") == is_honest(spec)
