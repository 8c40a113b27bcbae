"""A process that runs checks by their numbers, until it is told to end or its device is lost."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from gradspec_lab.cuda._asked import Asked


def serve(pipe: Connection, asked: Asked, threads: int) -> None:
    """Answer each number that comes with the number, the verdict as plain data, and whether the device still works.

    It ends when the other end of the pipe is closed.
    """
    # A compiler with a pool of its own, in each of these processes, would take all processors.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch

    from gradspec._engine._lost import why_lost
    from gradspec._engine._session import Session
    from gradspec.law import verdict_to_dict

    torch.set_num_threads(threads)
    checks = asked.checks()
    session = Session(checks, asked.profile, seed=asked.seed, isolate=False)
    pipe.send(len(checks))
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            os._exit(0)  # a search for cycles at the end would find nothing that matters
        verdict = session.run(checks[number])
        is_lost = bool(why_lost(asked.device))
        pipe.send((number, verdict_to_dict(verdict), not is_lost))
        if is_lost:
            os._exit(0)


def stream(pipe: Connection, module: str, device: str) -> None:
    """Send what the function `measure` of a module yields for a device, an item at a time, and None at the end."""
    from importlib import import_module

    for item in import_module(module).measure(device):
        pipe.send(item)
    pipe.send(None)
