"""Two ranks in two processes: what each gives comes back, and what raises on one of them is said, without a hang."""

from __future__ import annotations

import datetime
import gc
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from gradspec.laws.tensor.support import _two_ranks
from gradspec.laws.tensor.support._two_ranks import RankError, on_two_ranks
from gradspec_lab.specimens import NET


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def total(rank: int) -> dict[str, torch.Tensor]:
    """Return the sum over the ranks of the first natural numbers."""
    number = torch.tensor(rank + 1.0)
    torch.distributed.all_reduce(number)
    return {"rank": torch.tensor(rank), "total": number}


def test_each_rank_gives_its_own() -> None:
    assert [{name: float(t) for name, t in found.items()} for found in on_two_ranks(total)] == [
        {"rank": 0.0, "total": 3.0},
        {"rank": 1.0, "total": 3.0},
    ]
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize("sick", [0, 1])
def test_what_raises_first_is_said_though_the_other_rank_waits(sick: int) -> None:
    def work(rank: int) -> dict[str, torch.Tensor]:
        if rank == sick:
            raise ValueError(f"no rank {rank}")
        return total(rank)

    with pytest.raises(RankError, match=f"^on rank {sick} raised ValueError: no rank {sick}$"):
        on_two_ranks(work)
    assert not torch.distributed.is_initialized()


def test_the_first_rank_is_named_where_both_say_the_same() -> None:
    def work(rank: int) -> None:
        raise ValueError(f"rank {rank} cannot")

    for _ in range(3):
        with pytest.raises(RankError, match=r"^on rank 0 raised ValueError: rank 0 cannot$"):
            on_two_ranks(work)


def test_a_spec_names_one_of_two_wrappers() -> None:
    with pytest.raises(ValueError, match=r"data_parallel names 'dp', expected 'ddp' or 'fsdp2'"):
        replace(NET, data_parallel=("dp",))


@pytest.mark.slow
def test_a_rank_that_never_ends_is_ended() -> None:
    def work(rank: int) -> None:
        if rank:
            time.sleep(600)
        raise ValueError("no")

    with pytest.raises(RankError, match=r"^on rank 0 raised ValueError: no$"):
        on_two_ranks(work)


def test_a_rank_that_ends_is_said() -> None:
    with pytest.raises(RankError, match=r"^on rank 1 raised nothing: its process ended$"):
        on_two_ranks(lambda rank: os._exit(3) if rank else total(rank))


def test_a_group_that_an_earlier_call_left_unfreed_does_not_hold_the_next_one_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leaves_its_group(rank: int) -> dict[str, torch.Tensor]:
        circle: list[object] = [torch.distributed.group.WORLD]
        circle.append(circle)
        return total(rank)

    def collects(rank: int) -> dict[str, torch.Tensor]:
        if rank:
            gc.collect()
        return total(rank)

    monkeypatch.setattr(_two_ranks, "TIMEOUT", datetime.timedelta(minutes=5))
    gc.disable()
    try:
        on_two_ranks(leaves_its_group)
        assert [float(found["total"]) for found in on_two_ranks(collects)] == [3.0, 3.0]
    finally:
        gc.enable()
