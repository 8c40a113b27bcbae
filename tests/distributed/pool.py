"""Processes that stay, joined in one gloo group: a test sends them a function, and gets what each rank returns."""

from __future__ import annotations

import datetime
import faulthandler
import os
import socket
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.multiprocessing as processes

#: Long enough for a machine that is busy with other tests; a rank that dies is noticed at once.
TIMEOUT = datetime.timedelta(minutes=30)
#: How many seconds a rank may take to leave; then it says where it waits, and is gone.
LEAVING = 120


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def serve(rank: int, size: int, port: int, inbox: Connection) -> None:
    """Join the group, and call what comes until nothing does."""
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    torch.distributed.init_process_group("gloo", timeout=TIMEOUT)
    mesh = torch.distributed.init_device_mesh("cpu", (size,))
    while (task := inbox.recv()) is not None:
        function, args = task
        torch.manual_seed(0)
        try:
            inbox.send((True, function(mesh, *args)))
        except BaseException:  # the test shows it
            inbox.send((False, traceback.format_exc()))
    faulthandler.dump_traceback_later(LEAVING, exit=True)
    torch.distributed.destroy_process_group()


class Pool:
    """Ranks that wait for functions."""

    def __init__(self, size: int) -> None:
        self.size, port = size, free_port()
        pipes = [processes.get_context("spawn").Pipe() for _ in range(size)]
        self.inboxes = [ours for ours, _ in pipes]
        start = processes.get_context("spawn").Process
        self.ranks = [start(target=serve, args=(k, size, port, pipes[k][1]), daemon=True) for k in range(size)]
        for rank in self.ranks:
            rank.start()

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return what `function(mesh, *args)` gives on each rank; `function` is importable by its name."""
        for inbox in self.inboxes:
            inbox.send((function, args))
        found = [inbox.recv() for inbox in self.inboxes]
        if failed := [f"rank {k}:\n{text}" for k, (good, text) in enumerate(found) if not good]:
            raise AssertionError("\n".join(failed))
        return [value for _, value in found]

    def close(self) -> None:
        """End the processes."""
        for inbox in self.inboxes:
            inbox.send(None)
        for rank in self.ranks:
            rank.join(2 * LEAVING)
            if rank.is_alive():
                rank.kill()
