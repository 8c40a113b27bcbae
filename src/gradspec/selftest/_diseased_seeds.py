"""Diseased specimens under many seeds: how often their own law misses one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradspec._engine._plan import Check, checks_of, with_required
from gradspec.laws import LAWS
from gradspec.profile import Profile, load_profile
from gradspec.selftest._judging import NEEDS_CUDA
from gradspec.selftest._seeds import answers_of, by_case
from gradspec.selftest.specimens import DISEASED
from gradspec.selftest.specimens.diseased import Disease
from gradspec.spec._kinds import maker_of


def diseased_specimens(names: Sequence[str] = ()) -> dict[str, Disease]:
    """Return the diseased specimens by name.

    Args:
        names: parts of names; all of them unless told.
    """
    return {known: sick for known, sick in DISEASED.items() if not names or any(name in known for name in names)}


def sweep_diseased(
    count: int,
    specimens: Mapping[str, Disease],
    *,
    profile: Profile | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Hold what is diseased to the laws that must notice it, under the seeds 0, 1, 2 ...

    Args:
        count: how many seeds; fewer for some laws, as in `sweep`.
        specimens: by name.
        profile: how hard; `quick` unless told.
        jobs: as in `sweep`.
        minutes: as in `sweep`.
        progress: as in `sweep`.

    Returns:
        `specimens`, how many there are, and `tried`, of how many each case was run; `asked`, how often a law had to
        notice one of those under a seed, on one case at least; `missed`, a line for each time that it did not.
    """
    profile = profile or load_profile("quick")
    own = {name: [law for law in sick.caught_by if law not in _unmeasured()] for name, sick in specimens.items()}
    checks = by_case([check for name, sick in specimens.items() for check in _checks(name, sick, own[name], profile)])
    answers, *_ = answers_of(checks, count, profile, jobs=jobs, minutes=minutes, progress=progress)
    tried = {check.spec.name for check in checks} - {c.spec.name for k, c in enumerate(checks) if k not in answers}
    noticed: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)
    for number, (statuses, _) in answers.items():
        name, law = checks[number].spec.name, checks[number].law.name
        if name in tried and law in own[name]:
            for seed, status in enumerate(statuses):
                noticed[name, law][seed] = noticed[name, law].get(seed, False) or status.is_failure
    return {
        "specimens": len(specimens),
        "tried": len(tried),
        "asked": sum(map(len, noticed.values())),
        "missed": [
            f"seed {seed}: {name} · {law}"
            for (name, law), by_seed in sorted(noticed.items())
            for seed, is_noticed in by_seed.items()
            if not is_noticed
        ],
    }


def _unmeasured() -> tuple[str, ...]:
    return () if torch.cuda.is_available() else NEEDS_CUDA


def _checks(name: str, sick: Disease, own: Sequence[str], profile: Profile) -> list[Check]:
    needed = {law.name for law in with_required([law for law in LAWS if law.name in own], LAWS)}
    laws = [law for law in LAWS if law.name in needed]
    return checks_of([replace(sick.spec, name=name)], laws, profile, maker_of, known=LAWS)
