"""Sound functions under many seeds: how often a law is wrong about one.

The seeds of a check run one after another in one child process. What Dynamo compiled for one of them serves the next,
under the guards that it set itself: it is tracing that takes the time, and a compiled function must be right for other
numbers too. What a law exports, or compiles for sizes that it finds itself, serves no other seed: it runs under fewer.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from gradspec._engine._check import run_check
from gradspec._engine._child import Child
from gradspec._engine._plan import Check, plan
from gradspec._engine._pool import processors, run_groups
from gradspec.functions import FUNCTIONS
from gradspec.law import Finding, Law, Rank, Status
from gradspec.laws import LAWS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.profile import Profile, load_profile
from gradspec.selftest.specimens import HONEST
from gradspec.spec import Spec

#: Under how many seeds at most: laws for each seed of which something is compiled, and networks, a kind of spec.
AT_MOST: Mapping[str, int] = {"dynamic_shapes": 10, "export": 10, "exported_operator": 10, "module": 10}
#: A case may bring a float of its seed, for which Dynamo compiles again, more often than it finds reasonable.
RECOMPILATIONS = 10_000

#: A check by its number, the seeds, and what was said under each of them by the laws before.
Question = tuple[int, int, list[dict[str, Status]]]
#: The status under each seed, and the message of each failure by its seed.
Answer = tuple[list[Status], dict[int, str]]


def sound_specs(names: Sequence[str] = ()) -> tuple[Spec, ...]:
    """Return what is swept: the documented functions, operators and modules, and the sound specimens.

    Args:
        names: parts of names; all of them unless told.
    """
    every = {spec.name: spec for spec in (*FUNCTIONS, *OPERATORS, *HONEST, *MODULES)}
    return tuple(spec for known, spec in every.items() if not names or any(name in known for name in names))


def sweep(
    count: int,
    *,
    specs: Sequence[Spec] | None = None,
    laws: Sequence[Law] = (),
    profile: Profile | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Hold what is sound to the laws under the seeds 0, 1, 2 ...

    Args:
        count: how many seeds.
        specs: what to hold; `sound_specs()` unless told.
        laws: all of them unless told.
        profile: how hard; `quick` unless told.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; the cases that are running are finished, and those not begun are left out.
        progress: called before each check.

    Returns:
        `run`, the number of seeds, and `at_most`, by law or kind, where it is smaller; `cases`, how many there are,
        and `tried`, how many were run; `specs` and `laws`, names; `verdicts`, how many there were, and `by_law`;
        `failures`, a line for each that is broken, inconclusive or an error, and no limit of torch.
    """
    specs = sound_specs() if specs is None else specs
    laws, profile = laws or LAWS, profile or load_profile("quick")
    checks = by_case(plan(specs, laws, profile))
    answers, cases, left = answers_of(checks, count, profile, jobs=jobs, minutes=minutes, progress=progress)
    return {
        "run": count,
        "at_most": {what: most for what, most in AT_MOST.items() if most < count},
        "cases": cases,
        "tried": cases - left,
        "specs": [spec.name for spec in specs],
        "laws": [law.name for law in laws],
        "verdicts": sum(len(statuses) for statuses, _ in answers.values()),
        "by_law": _by_law({number: len(statuses) for number, (statuses, _) in answers.items()}, checks),
        "failures": [
            f"seed {seed}: {checks[number].spec.name} · {checks[number].law.name} · {checks[number].case}: {message}"
            for number, (_, messages) in sorted(answers.items())
            for seed, message in messages.items()
        ],
    }


def by_case(checks: Sequence[Check]) -> list[Check]:
    """Return checks with those of a case beside one another; of each the laws stay in their order."""
    return sorted(checks, key=_case_of)


def answers_of(
    checks: Sequence[Check],
    count: int,
    profile: Profile,
    *,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[dict[int, Answer], int, int]:
    """Run checks under the seeds 0, 1, 2 ...

    Args:
        checks: as `by_case` sorts them.
        count: how many seeds.
        profile: how hard.
        jobs: as in `sweep`.
        minutes: as in `sweep`.
        progress: as in `sweep`.

    Returns:
        The answers by the number of the check, how many cases there are, and how many of them were not begun.
    """
    groups = [list(group) for _, group in groupby(range(len(checks)), key=lambda k: _case_of(checks[k]))]
    end = time.monotonic() + 60 * minutes
    answers: dict[int, Answer] = {}
    #: What was said of a case under each seed, by the laws before.
    said: dict[tuple[str, str], list[dict[str, Status]]] = defaultdict(lambda: [{} for _ in range(count)])

    def ask(question: Question) -> Answer:
        number, seeds, prior = question
        return _under_seeds(checks[number], seeds, prior, profile)

    def run(child: Child[Question, Answer], number: int) -> None:
        check = checks[number]
        if progress:
            progress(len(answers), len(checks), f"{check.spec.name} · {check.law.name} · {check.case}")
        seeds = min(count, *(AT_MOST.get(what, count) for what in (check.law.name, check.spec.kind)))
        before = said[_case_of(check)]
        answer = child.ask((number, seeds, before[:seeds]))
        if isinstance(answer, Finding):  # the child died, or hangs
            answer = [answer.status] * seeds, {0: answer.message}
        for seed, status in enumerate(answer[0]):
            before[seed][check.law.name] = status
        answers[number] = answer

    children = [Child(ask, seconds=profile.seconds * max(1, count)) for _ in range(jobs or processors())]
    left = run_groups(groups, children, run, on=lambda: time.monotonic() < end)
    return answers, len(groups), left


def _by_law(counts: Mapping[int, int], checks: Sequence[Check]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number in sorted(counts):
        law = checks[number].law.name
        found[law] = found.get(law, 0) + counts[number]
    return dict(sorted(found.items()))


def _case_of(check: Check) -> tuple[str, str]:
    return check.spec.name, check.case


def _under_seeds(check: Check, seeds: int, prior: Sequence[dict[str, Status]], profile: Profile) -> Answer:
    statuses: list[Status] = []
    messages: dict[int, str] = {}
    with _compiling_once():
        for seed in range(seeds):
            finding = run_check(check, profile, seed=seed, prior=prior[seed]).finding
            statuses.append(finding.status)
            if finding.status.is_failure and finding.rank is not Rank.LIMIT:
                messages[seed] = finding.message
    return statuses, messages


@contextmanager
def _compiling_once() -> Iterator[None]:
    """Let what Dynamo compiled outlive a check: `torch._dynamo.reset` does nothing inside."""
    import torch._dynamo.config

    reset = torch._dynamo.reset
    reset()
    torch._dynamo.reset = lambda: None
    try:
        with torch._dynamo.config.patch(recompile_limit=RECOMPILATIONS, accumulated_recompile_limit=RECOMPILATIONS):
            yield
    finally:
        torch._dynamo.reset = reset
