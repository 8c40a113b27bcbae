"""Checks under many seeds, each case in one child process.

The seeds of a check run one after another. What Dynamo compiled for one of them serves the next, under the guards that
it set itself: it is tracing that takes the time, and a compiled function must be right for other numbers too. What a
law exports, or compiles for sizes that it finds itself, serves no other seed: it runs under fewer. What Dynamo refused
once it does not try again, and runs as it is: after a failure it forgets all.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby

from gradspec._engine._check import run_check
from gradspec._engine._child import Child
from gradspec._engine._plan import Check
from gradspec._engine._pool import processors, run_groups
from gradspec.law import Finding, Rank, Status
from gradspec.profile import Profile

#: Under how many seeds at most: laws for each seed of which something is compiled, and networks, a kind of spec.
AT_MOST: Mapping[str, int] = {"dynamic_shapes": 10, "export": 10, "exported_operator": 10, "module": 10}
#: A case may bring a float of its seed, for which Dynamo compiles again, more often than it finds reasonable.
RECOMPILATIONS = 10_000

#: How many seconds lie between two times that a run saves what it has.
BETWEEN = 30.0

#: A check by its number, the seeds, and what was said under each of them by the laws before.
Question = tuple[int, int, list[dict[str, Status]]]
#: The status under each seed, and the message of each failure by its seed.
Answer = tuple[list[Status], dict[int, str]]


def by_case(checks: Sequence[Check]) -> list[Check]:
    """Return checks with those of a case beside one another; of each the laws stay in their order."""
    return sorted(checks, key=case_of)


def answers_of(
    checks: Sequence[Check],
    count: int,
    profile: Profile,
    *,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Callable[[int, int, str], None] | None = None,
    save: Callable[[dict[int, Answer]], None] | None = None,
) -> dict[int, Answer]:
    """Run checks under the seeds 0, 1, 2 ...

    Args:
        checks: as `by_case` sorts them.
        count: how many seeds.
        profile: how hard.
        jobs: as in `sweep`.
        minutes: as in `sweep`.
        progress: as in `sweep`.
        save: called twice a minute with the answers so far.

    Returns:
        The answers by the number of the check; those of a case that was not begun are not there.
    """
    groups = [list(group) for _, group in groupby(range(len(checks)), key=lambda k: case_of(checks[k]))]
    end = time.monotonic() + 60 * minutes
    answers: dict[int, Answer] = {}
    lock, saved = threading.Lock(), time.monotonic()
    #: What was said of a case under each seed, by the laws before.
    said: dict[tuple[str, str], list[dict[str, Status]]] = defaultdict(lambda: [{} for _ in range(count)])

    def ask(question: Question) -> Answer:
        number, seeds, prior = question
        return _under_seeds(checks[number], seeds, prior, profile)

    def saving(save: Callable[[dict[int, Answer]], None]) -> None:
        nonlocal saved
        with lock:
            if time.monotonic() - saved > BETWEEN:
                save(dict(answers))
                saved = time.monotonic()

    def run(child: Child[Question, Answer], number: int) -> None:
        check = checks[number]
        if progress:
            progress(len(answers), len(checks), f"{check.spec.name} · {check.law.name} · {check.case}")
        seeds = seeds_of(check, count)
        before = said[case_of(check)]
        answer = child.ask((number, seeds, before[:seeds]))
        if isinstance(answer, Finding):  # the child died, or hangs
            answer = [answer.status] * seeds, {0: answer.message}
        for seed, status in enumerate(answer[0]):
            before[seed][check.law.name] = status
        answers[number] = answer
        if save:
            saving(save)

    children = [Child(ask, time_limit=profile.time_limit * max(1, count)) for _ in range(jobs or processors())]
    run_groups(groups, children, run, on=lambda: time.monotonic() < end)
    return answers


def seeds_of(check: Check, count: int) -> int:
    """Return under how many seeds a check runs where it is asked for `count`."""
    return min(count, *(AT_MOST.get(what, count) for what in (check.law.name, check.spec.kind)))


def case_of(check: Check) -> tuple[str, str]:
    """Return the names of the spec and of the case."""
    return check.spec.name, check.case


def _under_seeds(check: Check, seeds: int, prior: Sequence[dict[str, Status]], profile: Profile) -> Answer:
    statuses: list[Status] = []
    messages: dict[int, str] = {}
    with _compiling_once() as forget:
        for seed in range(seeds):
            finding = run_check(check, profile, seed=seed, prior=prior[seed]).finding
            statuses.append(finding.status)
            if finding.status.is_failure:
                forget()
            if finding.status.is_failure and finding.rank is not Rank.LIMIT:
                messages[seed] = finding.message
    return statuses, messages


@contextmanager
def _compiling_once() -> Iterator[Callable[[], None]]:
    """Let what Dynamo compiled outlive a check: `torch._dynamo.reset` does nothing inside, and is given out."""
    import torch._dynamo.config

    reset = torch._dynamo.reset
    reset()
    torch._dynamo.reset = lambda: None
    try:
        with torch._dynamo.config.patch(recompile_limit=RECOMPILATIONS, accumulated_recompile_limit=RECOMPILATIONS):
            yield reset
    finally:
        torch._dynamo.reset = reset
