"""A rank holds its rows and little more, and sends what the formulas of the page say, whatever the bank's size."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from distributed.counted import bank_steps, largest_shape, sent_with_a_weight
from distributed.pool import Pool

ROOT = Path(__file__).parents[2]
ROWS, FEATURES, BATCH = 200_000, 8, 4


@pytest.fixture(scope="module")
def costs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sharded_bank_costs", ROOT / "docs/examples/sharded/costs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_rank_holds_its_rows_and_sends_what_the_formula_says(pool: Pool, costs: ModuleType) -> None:
    for counted in pool.run(bank_steps, ROWS, FEATURES, BATCH):
        own = costs.bank_bytes(ROWS, pool.size, FEATURES) / FEATURES / 4
        assert own == ROWS / pool.size
        assert own <= counted["peak rows"] <= 1.1 * own
        assert counted["sent"] == costs.sent_bytes(BATCH, pool.size, FEATURES)


@pytest.mark.parametrize(("batch", "features"), [(1, 8), (4, 8), (4, 16)])
def test_what_is_sent_does_not_depend_on_the_size_of_the_bank(
    pool: Pool, costs: ModuleType, batch: int, features: int
) -> None:
    found = [step["sent"] for rows in (64, 6400) for step in pool.run(bank_steps, rows, features, batch)]
    assert set(found) == {costs.sent_bytes(batch, pool.size, features)}


@pytest.mark.parametrize(("batch", "features"), [(4, 8), (8, 16)])
def test_a_rank_gets_the_embeddings_of_all_ranks_and_no_more(
    pool: Pool, costs: ModuleType, batch: int, features: int
) -> None:
    gathered = [step["gathered"] for step in pool.run(bank_steps, 6400, features, batch)]
    assert gathered == [costs.batch_bytes(batch, pool.size, features)] * pool.size


def test_the_gradient_of_the_weight_sends_a_number_for_each_row_of_the_batch(pool: Pool) -> None:
    without = [step["sent"] for step in pool.run(bank_steps, 64, FEATURES, BATCH)]
    for rows in (64, 6400):
        # Less the update, plus the cotangents: the classes of the loss cost no more than those of a bank.
        update = (pool.size - 1) * (BATCH * (FEATURES * 4 + 8) + 80)
        cotangents = (pool.size - 1) * BATCH * 4
        assert pool.run(sent_with_a_weight, rows, FEATURES, BATCH) == [without[0] - update + cotangents] * pool.size


def test_no_rank_makes_a_tensor_of_all_logits(two: Pool) -> None:
    rows, batch = 400_000, 16
    assert max(two.run(largest_shape, rows, batch)) < rows * batch / 2, "not even of its own share of them"
