"""The same work in two processes that are joined in one gloo group: this one, and one that is forked off it."""

from __future__ import annotations

import datetime
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from gradspec._clock import Clock
from gradspec._searches import fork
from gradspec.law import shown
from gradspec.laws.tensor.support._ranks import RANKS, forget_sizes

#: How long gloo lets one wait for the other. A rank that dies closes its connections, which ends the wait at once; one
#: that hangs is the affair of the limit on the answer, which counts no time that others take from the processors.
TIMEOUT = datetime.timedelta(days=1)
#: How many seconds of CPU time the other rank may use, or sleep, once one has raised.
PATIENCE = 2.0


class RankError(Exception):
    """The work raised on one of the ranks; the message says on which."""

    def __init__(self, rank: int, raised: str) -> None:
        super().__init__(f"on rank {rank} raised {raised}")
        self.rank = rank


@dataclass(frozen=True)
class _Answer:
    """The result of the work on a rank, or the error and its time."""

    gave: Any = None
    raised: str = ""
    when: float = 0.0


def on_two_ranks(work: Callable[[int], Any]) -> list[Any]:
    """Return what the work gives on each rank; tensors, and lists and dictionaries of them.

    Raises:
        RankError: it raised, or its process ended. Of two ranks that raise the first is named: the other waited.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        if not (other := fork()):  # a group of an earlier call may lie here unfreed
            try:
                torch.save(vars(_joined(1, folder, work)), answer)
            finally:
                os._exit(0)
        mine = _joined(0, folder, work)
        theirs = _of(other, answer, has_raised=bool(mine.raised))
    is_first = mine.when <= theirs.when or same_but_for_the_rank(mine.raised, theirs.raised)
    if mine.raised and (is_first or not theirs.raised):
        raise RankError(0, mine.raised)
    if theirs.raised:
        raise RankError(1, theirs.raised)
    return [mine.gave, theirs.gave]


def _of(process: int, answer: Path, *, has_raised: bool) -> _Answer:
    """Return what the other rank says once it ends; no answer where it had to be ended."""
    clock, end = Clock(process, PATIENCE), os.pidfd_open(process)
    try:
        while not wait([end], clock.look):
            if has_raised and clock.ran_out():
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return _Answer()
        os.waitpid(process, 0)
    finally:
        os.close(end)
    return _Answer(**torch.load(answer)) if answer.exists() else _Answer(raised="nothing: its process ended")


def same_but_for_the_rank(mine: str, theirs: str) -> bool:
    """Whether two ranks say the same, each of itself: which was first is then a matter of chance."""
    return bool(mine) and re.sub(r"rank \d", "rank", mine) == re.sub(r"rank \d", "rank", theirs)


def _joined(rank: int, folder: str, work: Callable[[int], Any]) -> _Answer:
    from torch._C._distributed_c10d import FileStore  # a torch that is built without torch.distributed lacks it

    torch.set_num_threads(1)  # the threads of the process that forked are not in this one
    forget_sizes()  # an earlier call on rank 0 has left those of its shards to both
    store = FileStore(str(Path(folder) / "store"), RANKS)
    store.set_timeout(TIMEOUT)
    try:
        torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=TIMEOUT)
        torch.distributed.barrier()  # one that raises at once would leave while the other still joins it
        return _Answer(gave=work(rank))
    except Exception as error:
        return _Answer(raised=shown(error), when=time.monotonic())
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        forget_sizes()
