"""Run a plan in several child processes at a time; the verdicts come in the order of the plan, whoever was first."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from gradspec._isolation import available
from gradspec._plan import Check
from gradspec._session import Session
from gradspec.law import Verdict
from gradspec.profile import Profile

#: A child of its own pays from about so many checks on.
CHECKS_A_CHILD = 50

#: progress(done, total, what is running now)
Progress = Callable[[int, int, str], None]


def run_checks(
    checks: Sequence[Check],
    profile: Profile,
    *,
    seed: int = 0,
    isolate: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdicts of checks.

    Args:
        checks: what to run.
        profile: how hard.
        seed: of all random numbers.
        isolate: as `Session` takes it.
        jobs: how many child processes at a time; as many as there are processors, where that pays.
        progress: called before each check, and once at the end.
    """
    if isolate is False or not available(profile.device):
        jobs = 1  # in this process, where checks would meet
    shares = _shares(checks, jobs or min(_processors(), 1 + len(checks) // CHECKS_A_CHILD))
    verdicts: dict[int, Verdict] = {}
    stop, lock = threading.Event(), threading.Lock()

    def work(session: Session, share: list[int]) -> None:
        for number in share:
            if stop.is_set():
                return
            check = checks[number]
            if progress:
                with lock:
                    progress(len(verdicts), len(checks), f"{check.spec.name} · {check.law.name} · {check.case}")
            verdicts[number] = session.run(check)

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(shares)))
        stack.callback(stop.set)
        sessions = [
            stack.enter_context(Session([checks[n] for n in share], profile, seed=seed, isolate=isolate))
            for share in shares
        ]
        # Forked here and not in a thread of the pool: a child that is forked elsewhere waits for ever for the lock of a
        # module that this thread is importing, as where a module verifies its specs when it is imported.
        for session in sessions:
            session.start()
        running = [pool.submit(work, session, share) for session, share in zip(sessions, shares, strict=True)]
        for future in running:
            future.result()
    if progress:
        progress(len(checks), len(checks), "done")
    return tuple(verdicts[number] for number in range(len(checks)))


def _processors() -> int:
    # Those that this process may use: a container has fewer than the machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shares(checks: Sequence[Check], jobs: int) -> list[list[int]]:
    """Deal the checks out, all of one case to one child: a law may require another one on its case."""
    hands: dict[tuple[str, str], list[int]] = {}
    for number, check in enumerate(checks):
        hands.setdefault((check.spec.name, check.case), []).append(number)
    shares: list[list[int]] = [[] for _ in range(max(1, min(jobs, len(hands))))]
    for turn, hand in enumerate(hands.values()):
        shares[turn % len(shares)] += hand
    return shares
