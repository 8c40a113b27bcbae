"""A sharded bank moves as one process moves it, is drawn alike on any number of ranks, and is saved and loaded."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest
import torch

from distributed.banks import WRONG, drawn, error_of, load_and_save, load_published, numbered, save, update
from distributed.pool import Pool
from gradspec.nn import LinearAverage

ROWS = 11
#: The rows that each of two ranks moves.
MOVES = {
    "rows of its own": [[0, 1], [10, 9]],
    "rows of the other": [[10, 9], [0, 1]],
    "repeated within a batch": [[3, 3, 3], [7, 7]],
    "repeated between ranks": [[3, 8, 5], [5, 3, 8]],
    "repeated within and between": [[4, 4, 6], [6, 4, 4, 6]],
    "no row on one rank": [[], [6, 6, 2]],
    "no row at all": [[], []],
}


def moved_by_one(y: list[list[int]]) -> list[list[float]]:
    """Return the bank that one process has after it moves the rows of all ranks, in their order."""
    bank = LinearAverage(2, ROWS)
    bank.memory.copy_(numbered(ROWS))
    x = [100.0 * rank + torch.arange(2.0 * len(places)).view(-1, 2) for rank, places in enumerate(y)]
    bank.update(torch.cat(x), torch.tensor([*chain(*y)], dtype=torch.int64))
    return bank.memory.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("y", MOVES.values(), ids=MOVES)
def test_rows_move_bit_for_bit_as_in_one_process_on_all_batches(two: Pool, y: list[list[int]]) -> None:
    assert [*chain(*two.run(update, ROWS, y))] == moved_by_one(y)


@pytest.mark.slow
def test_any_number_of_ranks_draws_the_same_bank(two: Pool, four: Pool) -> None:
    rows = 2500  # blocks that begin on one rank and end on another
    (by_two, by_four) = ([rank[0] for rank in pool.run(drawn, rows)] for pool in (two, four))
    assert [len(rank) for rank in by_four] == [625] * 4
    assert [*chain(*by_two)] == [*chain(*by_four)]
    assert len({tuple(row) for row in [*chain(*by_two)]}) == rows
    assert two.run(drawn, 7)[1][1] == "LinearAverage(inputSize=3, outputSize=7, T=0.1, momentum=0.5)"


@pytest.mark.slow
def test_a_bank_goes_from_four_ranks_to_two_to_one_to_three(
    two: Pool, four: Pool, one: Pool, three: Pool, tmp_path: Path
) -> None:
    folders = [str(tmp_path / name) for name in "abcd"]
    four.run(save, folders[0], ROWS)
    for pool, before, after in zip((two, one, three), folders[:3], folders[1:], strict=True):
        found = pool.run(load_and_save, before, after, ROWS)
        assert found == [{"same rows": True, "params": [0.3, 0.25]}] * pool.size


@pytest.mark.slow
@pytest.mark.parametrize("how", ["load_state_dict", "set_model_state_dict"])
def test_a_published_file_is_loaded_into_shards(two: Pool, tmp_path: Path, how: str) -> None:
    torch.save({"params": torch.tensor([0.3, 0.25]), "memory": numbered(ROWS)}, tmp_path / "published.pt")
    found = two.run(load_published, str(tmp_path / "published.pt"), ROWS, how)
    assert found == [{"same rows": True, "params": [0.3, 0.25]}] * 2


NO_LOGITS = "TypeError: .*memory is a DTensor. The logits of a sharded bank are on no rank: use LinearAverage.loss"
PAST = "IndexError: .*y holds 5.* and the bank has"
#: What the first rank says, and the last one if it says something else.
SAYS = {
    "logits in training": (NO_LOGITS,),
    "logits in evaluation": (NO_LOGITS,),
    "LinearAverageOp": (NO_LOGITS,),
    "the loss of one process": ("TypeError: .*memory is a DTensor. Call the function instance_discrimination_loss",),
    "loss, row past the bank": (PAST,),
    "update, row past the bank": (PAST,),
    "update, other features": ("RuntimeError: .*rank 1 of the mesh refuses", r"ValueError: .*give x as \(B, 3\)"),
    "update, other momentum": ("RuntimeError: .*an option differs between rank 0 and rank 1 of the mesh",),
    "sharded twice": ("ValueError: shard: the bank is sharded already",),
    "no bank": ("TypeError: shard: bank is a Linear, expected a LinearAverage",),
    "mesh of two dimensions": ("ValueError: shard: the mesh has 2 dimensions",),
    "state of another size": (r"RuntimeError: .*memory has shape \(6, 3\) in the state, and \(5, 3\) here",),
    "sharded state into a whole bank": ("RuntimeError: .*memory is sharded in the state, and whole here",),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_an_error_on_every_rank(two: Pool, name: str) -> None:
    expected = SAYS[name]
    for words, found in zip((expected[0], expected[-1]), two.run(error_of, name), strict=True):
        assert re.search(words, found, re.DOTALL), found
