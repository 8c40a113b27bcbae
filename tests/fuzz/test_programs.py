"""Random graphs with our functions beside torch's operations: values, gradients, hooks and errors are the reference's.

GRADSPEC_FUZZ_EXAMPLES says how many; `nox -s lab -- fuzz` runs 10,000. A failure prints the program.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from torch import Tensor
from torch.autograd import Function

from fuzz.programs import CALLS, IN_PLACE, ORDINARY, VIEWS, source
from fuzz.replay import OURS, THEIRS, difference, run

PROGRAMS = int(os.environ.get("GRADSPEC_FUZZ_EXAMPLES", "150"))
CHUNK = 50


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_that_random_graphs_agree(first: int) -> None:
    found = [said for seed in range(first, min(first + CHUNK, PROGRAMS)) if (said := difference(seed))]
    assert found == []


def test_that_the_programs_hold_what_they_are_to_compare() -> None:
    texts = [source(seed) for seed in range(400)]
    for table in (CALLS, ORDINARY, VIEWS, IN_PLACE):
        for expression in table:
            words = max(re.split(r"\{\w+\}", expression), key=len)
            assert sum(words in text for text in texts) > 3, expression
    for words in ("register_hook", "retain_grad()", "create_graph=True", "allow_unused=True", "autograd.backward(["):
        assert sum(words in text for text in texts) > 20, words
    counts: Counter[str] = Counter()
    for seed in range(100):
        difference(seed, counts)
    assert counts["values"] > 70


class _Halved(Function):
    @staticmethod
    def forward(x: Tensor, alpha: float) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad / 2, None


def _detached(*args: Any) -> Any:
    return OURS.shake_shake(*args).detach()


@pytest.mark.parametrize(
    "broken", [{"grad_factor": _Halved.apply}, {"shake_shake": _detached}], ids=["its factor", "its graph"]
)
def test_that_a_broken_function_is_found(broken: dict[str, Any]) -> None:
    functions = SimpleNamespace(**{**vars(OURS), **broken})
    found = [said for seed in range(60) if (said := difference(seed, functions=functions))]
    assert found
    assert all("def program(F):" in said for said in found)


def test_that_a_printed_program_can_be_run_again() -> None:
    values = run(source(3), THEIRS)
    assert isinstance(values, list)
    assert source(3) == source(3)
