"""Sound functions under many seeds: how often a law is wrong about one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from gradspec._engine._plan import Check, plan
from gradspec.functions import FUNCTIONS
from gradspec.law import Law
from gradspec.laws import LAWS
from gradspec.nn import MODULES
from gradspec.operators import OPERATORS
from gradspec.profile import Profile, load_profile
from gradspec.spec import Spec
from gradspec_lab.selftest._under_seeds import AT_MOST, Answer, answers_of, by_case, case_of, seeds_of
from gradspec_lab.specimens import HONEST

#: What failed on a case: the seed, the law, and what it said.
Failure = tuple[int, str, str]
#: What failed on the cases that a run has tried, by the names of the spec and of the case.
Rows = Mapping[tuple[str, str], Sequence[Failure]]


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
    kept: Rows | None = None,
    save: Callable[[dict[str, Any]], None] | None = None,
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
        kept: what an earlier run said of cases, which are not measured again.
        save: called twice a minute with what is returned, as far as the run has come.

    Returns:
        `run`, the number of seeds, and `at_most`, by law or kind, where it is smaller; `cases`, how many there are,
        and `tried`, how many were run; `specs` and `laws`, names; `verdicts`, how many there were, and `by_law`;
        `failures`, a line for each that is broken, inconclusive or an error, and no limit of torch; `rows`, the same
        by case; `measured`, how many cases this run has measured.
    """
    specs = sound_specs() if specs is None else specs
    laws, profile, kept = laws or LAWS, profile or load_profile("every-case"), kept or {}
    checks = by_case(plan(specs, laws, profile))
    wanted = [check for check in checks if case_of(check) not in kept]
    before = {case: list(kept.get(case, ())) for case in map(case_of, checks)}

    def so_far(answers: Mapping[int, Answer]) -> dict[str, Any]:
        pending = {case_of(check) for number, check in enumerate(wanted) if number not in answers}
        found = {case: [*failures] for case, failures in before.items() if case not in pending}
        for number, (_, messages) in sorted(answers.items()):
            case, law = case_of(wanted[number]), wanted[number].law.name
            if case in found:
                found[case] += [(seed, law, message) for seed, message in messages.items()]
        tried = [check for check in checks if case_of(check) in found]
        by_law = Counter[str]()
        for check in tried:
            by_law[check.law.name] += seeds_of(check, count)
        return {
            "run": count,
            "at_most": {what: most for what, most in AT_MOST.items() if most < count},
            "cases": len({case_of(check) for check in checks}),
            "tried": len(found),
            "specs": [spec.name for spec in specs],
            "laws": [law.name for law in laws],
            "verdicts": by_law.total(),
            "by_law": dict(sorted(by_law.items())),
            "failures": [line for case, failures in found.items() for line in _lines(*case, failures)],
            "rows": [_row(case, list(group), count, found[case]) for case, group in groupby(tried, key=case_of)],
            "measured": len({case_of(wanted[number]) for number in answers}),
        }

    saving = None if save is None else lambda found: save(so_far(found))
    answers = answers_of(wanted, count, profile, jobs=jobs, minutes=minutes, progress=progress, save=saving)
    return so_far(answers)


def _lines(spec: str, case: str, failures: Sequence[Failure]) -> list[str]:
    """Return what failed on a case, a line each."""
    return [f"seed {seed}: {spec} · {law} · {case}: {message}" for seed, law, message in failures]


def _row(case: tuple[str, str], checks: Sequence[Check], count: int, failures: Sequence[Failure]) -> dict[str, Any]:
    spec, name = case
    row = {"spec": spec, "case": name, "verdicts": sum(seeds_of(check, count) for check in checks)}
    return {**row, "failures": [list(failure) for failure in failures]} if failures else row
