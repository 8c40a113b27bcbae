"""A process that runs checks by their numbers, until it is told to end or its device is lost."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from typing import Any

from gradspec_lab.cuda._asked import Asked

#: An illegal access or an assertion on the device leaves a process in which every later call raises.
LOST = "the device is lost to its process after this check"


def serve(pipe: Connection, asked: Asked, threads: int) -> None:
    """Answer each number that comes with the number, the verdict as plain data, and whether the device still works.

    It ends when the other end of the pipe is closed.
    """
    # A compiler with a pool of its own, in each of these processes, would take all processors.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch

    from gradspec._engine._check import verdict_of
    from gradspec._engine._session import Session
    from gradspec.law import Finding, Status, raised, verdict_to_dict

    torch.set_num_threads(threads)
    checks = asked.checks()
    session = Session(checks, asked.profile, seed=asked.seed, isolate=False)
    pipe.send(len(checks))
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            os._exit(0)  # a search for cycles at the end would find nothing that matters
        check = checks[number]
        try:
            verdict = session.run(check)
        except BaseException as error:  # what puts the state of the process back raises where the device is lost
            verdict = verdict_of(check, raised(error), asked.profile, seed=asked.seed)
        lost = _lost(torch, asked.device)
        if lost and not verdict.finding.is_failure:
            finding = Finding(status=Status.ERROR, message=f"{LOST}: {lost}")
            verdict = verdict_of(check, finding, asked.profile, seed=asked.seed)
        pipe.send((number, verdict_to_dict(verdict), not lost))
        if lost:
            os._exit(0)


def _lost(torch: Any, device: str) -> str:
    """Return what a device raises that has been lost, one line; nothing if it works."""
    if not device.startswith("cuda"):
        return ""
    try:
        torch.cuda.synchronize()
    except Exception as error:
        return str(error).partition("\n")[0]
    return ""


def stream(pipe: Connection, module: str, device: str) -> None:
    """Send what the function `measure` of a module yields for a device, an item at a time, and None at the end."""
    from importlib import import_module

    for item in import_module(module).measure(device):
        pipe.send(item)
    pipe.send(None)
