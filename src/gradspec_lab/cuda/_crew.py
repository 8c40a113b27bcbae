"""Several processes on one device: each check is given to the next that is free, and the death of one is a verdict."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from gradspec._engine._check import verdict_of
from gradspec._engine._no_answer import died, ran_out
from gradspec._engine._plan import Check
from gradspec.law import Finding, Verdict, verdict_from_dict
from gradspec_lab.cuda._asked import Asked
from gradspec_lab.cuda._worker import serve, stream

#: How many seconds a check may take, and one that compiles: others compile beside it.
LIMITS = {"compile": 120.0}
LIMIT = 60.0
#: How many seconds a process may take to import torch and to plan.
START = 180.0
#: How many seconds what runs at the end of the time may still take.
GRACE = 30.0
#: How often a process may die before it has answered anything: then it is not a check that kills it.
TRIES = 3
_SPAWN = multiprocessing.get_context("spawn")  # CUDA does not survive a fork

#: found(verdict by number so far, the number of all)
Found = Callable[[dict[int, Verdict], int], None]


@dataclass
class _Member:
    process: Any
    pipe: Connection
    #: When what it does now has to be done.
    until: float
    #: The check that it runs, and those of the same case that come next.
    now: int | None = None
    queue: deque[int] = field(default_factory=deque)


def run(asked: Asked, checks: Sequence[Check], *, jobs: int, threads: int, seconds: float, found: Found) -> str:
    """Run checks, and call `found` after each verdict; return why some were not run, or nothing.

    Args:
        asked: what the processes plan: `checks` again.
        checks: the plan.
        jobs: how many processes.
        threads: of each, for what it computes on the CPU.
        seconds: after which no further check is begun.
        found: called with the verdicts so far.
    """
    verdicts: dict[int, Verdict] = {}
    groups, end, barren = deque(_groups(checks)), time.monotonic() + seconds, 0
    crew: list[_Member] = []
    try:
        while (groups or crew) and barren < TRIES * jobs:
            late = time.monotonic() > end
            while groups and not late and len(crew) < min(jobs, len(groups) + len(crew)):
                crew.append(_member(serve, asked, threads))
            for member, message in _news(crew):
                if isinstance(message, tuple):
                    number, data, works = message
                    verdicts[number] = verdict_from_dict(data)
                    member.now = None
                    found(verdicts, len(checks))
                elif isinstance(message, int):
                    works = message == len(checks)  # or what it plans is another run
                    barren += not works
                else:  # it died, or its time is up
                    if member.now is not None and message is not None:
                        verdicts[member.now] = verdict_of(checks[member.now], message, asked.profile, seed=asked.seed)
                        found(verdicts, len(checks))
                    works, barren = False, barren + (member.now is None)
                if not works:
                    crew.remove(member)
                    _end(member)
                    if member.queue:
                        groups.appendleft(list(member.queue))
                    continue
                if not member.queue and groups:
                    member.queue.extend(groups.popleft())
                if member.queue and time.monotonic() < end:
                    _ask(member, checks)
                else:
                    crew.remove(member)
                    _end(member)
                    if member.queue:
                        groups.appendleft(list(member.queue))
            if late and (not crew or time.monotonic() > end + GRACE):
                break
    finally:
        for member in crew:
            _end(member)
    if len(verdicts) == len(checks):
        return ""
    why = f"the {seconds:.0f} s for the laws were over" if barren < TRIES * jobs else "the processes end as they start"
    return f"{len(checks) - len(verdicts)} of {len(checks)} checks were not run: {why}"


def streamed(module: str, device: str, *, seconds: float) -> Iterator[Any]:
    """Yield what the function `measure` of a module yields, in a process of its own; as a text, why it ended early."""
    member = _member(stream, module, device)
    member.until = time.monotonic() + seconds
    try:
        while True:
            for _, message in _news([member]):
                if isinstance(message, Finding):
                    yield message.message
                    return
                if message is None:
                    return
                yield message
    finally:
        _end(member)


def _groups(checks: Sequence[Check]) -> list[list[int]]:
    """Deal the checks out, those of a case together, as a law may require another one.

    Behind them comes each that compiles, by itself: what it requires runs again, in milliseconds.
    """
    quick: dict[tuple[str, str], list[int]] = {}
    slow: list[list[int]] = []
    for number, check in enumerate(checks):
        if check.law.cost == "compile":
            slow.append([number])
        else:
            quick.setdefault((check.spec.name, check.case), []).append(number)
    return [*quick.values(), *slow]


def _member(work: Callable[..., None], *args: Any) -> _Member:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=work, args=(theirs, *args), daemon=False)
    process.start()
    theirs.close()
    return _Member(process=process, pipe=ours, until=time.monotonic() + START)


def _ask(member: _Member, checks: Sequence[Check]) -> None:
    member.now = member.queue.popleft()
    member.until = time.monotonic() + LIMITS.get(checks[member.now].law.cost, LIMIT)
    with suppress(OSError):  # it has died: its end is read next
        member.pipe.send(member.now)


def _news(crew: Sequence[_Member]) -> Iterator[tuple[_Member, Any]]:
    """Yield what each process that has something to say says; of one that died or is late, a finding."""
    ready = set(wait([member.pipe for member in crew], timeout=1.0))
    for member in list(crew):
        if member.pipe in ready:
            try:
                yield member, member.pipe.recv()
            except (EOFError, OSError):
                member.process.join(10)
                yield member, died(member.process.exitcode or 0, "")
        elif time.monotonic() > member.until:
            yield member, ran_out("it took longer than a check may")


def _end(member: _Member) -> None:
    with suppress(OSError):
        member.pipe.close()
    member.process.join(0.1)
    if member.process.is_alive():
        member.process.kill()
        member.process.join()
