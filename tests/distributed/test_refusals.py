"""A wrong call over a mesh is an error on every rank, even if only one rank is wrong: none of them waits."""

from __future__ import annotations

import re

import pytest

from distributed.pool import Pool
from distributed.wrong_calls import WRONG, error_of

DIFFERS = "differs between rank 0 and rank 1 of the mesh"
#: What the first rank says, and the last one if it says something else.
SAYS = {
    "mesh of two dimensions": ("ValueError: .*the mesh has 2 dimensions, expected 1. Name one of them",),
    "replicated": (r"ValueError: .*weight is placed as R.*, expected Shard\(dim=0\)",),
    "sharded by columns": (r"ValueError: .*weight is placed as S.*, expected Shard\(dim=0\)",),
    "another mesh": ("ValueError: .*mesh is .* and weight is on .*Leave mesh out",),
    "DTensor as x": (r"TypeError: .*x is a DTensor, .*Write x.to_local\(\)",),
    "bias that is not sharded": ("TypeError: .*give both the weight and the bias as DTensors",),
    "class that no rank has": ("IndexError: .*target holds 5 on a rank, and the weight has rows 0 to 4",),
    "wrong dtype on one rank": (
        "RuntimeError: .*rank 1 of the mesh refuses its call",
        "TypeError: .*x has dtype torch.float64 and weight torch.float32",
    ),
    "another temperature on one rank": (f"RuntimeError: .*an option {DIFFERS}",),
    "margin on one rank only": (f"RuntimeError: .*whether there is a margin {DIFFERS}",),
    "weight without a gradient on some ranks": (f"RuntimeError: .*the weight or the bias requires grad {DIFFERS}",),
    "no row on any rank": ("ValueError: .*the weight has no row on any rank",),
    "compiled as one graph": ("Unsupported: .*its ranks communicate",),
    "torch.func": ("RuntimeError: .*torch.func and torch.vmap do not work over a mesh",),
    "forward mode": ("RuntimeError: .*forward mode does not work over a mesh",),
    "differentiated twice": ("RuntimeError: .*a second derivative is asked for, and over a mesh there is none",),
    "Function of one process": ("TypeError: .*weight is a DTensor. Call the function linear_cross_entropy",),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_an_error_on_every_rank(two: Pool, name: str) -> None:
    said = two.run(error_of, name)
    expected = SAYS[name]
    for words, found in zip((expected[0], expected[-1]), said, strict=True):
        assert re.search(words, found, re.DOTALL), found
