"""The other process of two ranks does not end what was left behind in this one: its end would wait for threads."""

from __future__ import annotations

import gc
import os

import torch

from gradspec.laws.tensor.support._two_ranks import on_two_ranks

SEARCHES = []


def search():
    """Search for cycles as Python does behind a fork, once it has made a few objects."""
    if SEARCHES:
        gc.set_threshold(1)
        SEARCHES.extend([] for _ in range(100))


os.register_at_fork(after_in_child=search)


class Left:
    """In a cycle, as a group of ranks that an error holds."""

    def __init__(self, ended):
        self.me, self.ended = self, ended

    def __del__(self):
        with self.ended.open("a") as file:
            file.write(f"{os.getpid()}\n")


def test_a_search_for_cycles_behind_the_fork_ends_nothing(tmp_path):
    ended, before = tmp_path / "ended", gc.get_threshold()
    ended.touch()
    gc.collect()
    gc.set_threshold(10**6)
    SEARCHES.append("now")
    try:
        Left(ended)
        assert [int(found) for found in on_two_ranks(lambda rank: torch.tensor(rank))] == [0, 1]
    finally:
        SEARCHES.clear()
        gc.set_threshold(*before)

    assert set(ended.read_text().split()) <= {str(os.getpid())}
