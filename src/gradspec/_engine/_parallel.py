"""Run a plan in several child processes at a time; the verdicts come in the order of the plan, whoever was first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from gradspec._engine._child import available
from gradspec._engine._compiler import import_compiler, import_dynamo
from gradspec._engine._interrupts import interrupts
from gradspec._engine._plan import Check
from gradspec._engine._pool import processors, run_groups
from gradspec._engine._session import Session
from gradspec.law import Verdict
from gradspec.profile import Profile

#: A child of its own pays from about so many checks on,
CHECKS_A_CHILD = 50
#: one that compiles counts as so many.
COMPILATION = 25

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
    found: dict[int, Verdict] | None = None,
) -> tuple[Verdict, ...]:
    """Return the verdicts of checks.

    Args:
        checks: what to run.
        profile: how hard.
        seed: of all random numbers.
        isolate: as `Session` takes it.
        jobs: how many child processes at a time; as many as there are processors, where that pays.
        progress: called before each check, and once at the end.
        found: the verdicts that are known already, by the number of the check; the others are added as they come, so
            that what was measured is there if the run is interrupted.
    """
    verdicts = {} if found is None else found
    known = list(verdicts.values())
    left = [number for number in range(len(checks)) if number not in verdicts]
    apart = isolate is not False and available(profile.device)
    groups = _groups(checks, left)
    compiling = sum(checks[number].law.cost == "compile" for number in left)
    paying = 1 + (len(left) + (COMPILATION - 1) * compiling) // CHECKS_A_CHILD
    # In this process, where checks would meet, one at a time.
    jobs = max(1, min(len(groups), jobs or min(processors(), paying))) if apart else 1
    lock = threading.Lock()
    failed = 0

    with interrupts() as again:

        def run(session: Session, number: int) -> None:
            nonlocal failed
            again()
            check = checks[number]
            if progress:
                with lock:
                    now = f"{check.spec.name} · {check.law.name} · {check.case}"
                    progress(len(verdicts), len(checks), f"{failed} failed · {now}" if failed else now)
            verdicts[number] = session.run(check)
            failed += verdicts[number].finding.is_failure

        if left:
            if compiling and jobs == 1:
                import_dynamo()  # the first child would, for what it watches, and each one after it
            sessions = [Session(checks, profile, seed=seed, isolate=isolate, said=known) for _ in range(jobs)]
            run_groups(groups, sessions, run, meanwhile=import_compiler if compiling else lambda: None)
    if progress:
        progress(len(checks), len(checks), "done")
    return tuple(verdicts[number] for number in range(len(checks)))


def _groups(checks: Sequence[Check], numbers: Sequence[int]) -> list[list[int]]:
    """Deal some checks out, those of one case in one group, as a law may require another one on its case.

    Those that compile are a group each, behind all others: what they need is imported while the others run, and what
    they require takes milliseconds. The last law is the first of them: it waits seconds for a new process, in which
    another child compiles.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    places = {law: place for place, law in enumerate(dict.fromkeys(check.law.name for check in checks))}
    for number in numbers:
        check = checks[number]
        key = check.spec.name, check.case, *([check.law.name] if check.law.cost == "compile" else [])
        groups.setdefault(key, []).append(number)

    def place(group: list[int]) -> int:
        law = checks[group[0]].law
        return -places[law.name] if law.cost == "compile" else -len(places)

    return sorted(groups.values(), key=place)
