"""Fifty steps over ranks end where one process ends: with each wrapper, precision and trick of training."""

from __future__ import annotations

import pytest
import torch

from distributed.pool import Pool
from distributed.training import train

#: bfloat16 has 8 bits, and a sum of gradients in another order differs by their rounding.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 3e-2}
HOW = {
    "DistributedDataParallel": torch.float64,
    "FSDP2": torch.float64,
    "gradient accumulation": torch.float64,
    "activation checkpointing": torch.float64,
    "compiled encoder": torch.float64,
    "bfloat16 autocast": torch.bfloat16,
}


def _held(found: list[dict[str, float]], tolerance: float) -> None:
    for errors in found:
        assert errors.pop("moved") > 0.1, "the bank has moved"
        # Ranks add in another order: they may round as one process does, each of the two in its own direction.
        allowed = max(tolerance, 2 * errors.pop("rounding"))
        assert max(errors.values()) <= allowed <= 10 * tolerance, errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        pytest.param(how, dtype, id=how, marks=[] if how in ("DistributedDataParallel", "FSDP2") else pytest.mark.slow)
        for how, dtype in HOW.items()
    ],
)
def test_training_ends_where_one_process_ends(two: Pool, how: str, dtype: torch.dtype) -> None:
    _held(two.run(train, how, torch.float32 if dtype == torch.bfloat16 else dtype), TOLERANCES[dtype])


@pytest.mark.parametrize("how", ["FSDP2", "gradient accumulation"])
@pytest.mark.slow
def test_training_on_four_ranks_ends_where_one_process_ends(four: Pool, how: str) -> None:
    _held(four.run(train, how, HOW[how]), TOLERANCES[HOW[how]])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_ranks_may_have_batches_of_different_sizes(pool: Pool, dtype: torch.dtype) -> None:
    _held(pool.run(train, "DistributedDataParallel", dtype, (1, 4, 0)), TOLERANCES[dtype])
