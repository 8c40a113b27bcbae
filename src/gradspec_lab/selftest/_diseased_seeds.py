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
from gradspec.spec._kinds import maker_of
from gradspec_lab.selftest._judging import NEEDS_CUDA
from gradspec_lab.selftest._under_seeds import Answer, answers_of, by_case
from gradspec_lab.specimens import DISEASED
from gradspec_lab.specimens.diseased import Disease


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
    kept: Mapping[str, Mapping[str, Any]] | None = None,
    save: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Hold what is diseased to the laws that must notice it, under the seeds 0, 1, 2 ...

    Args:
        count: how many seeds; fewer for some laws, as in `sweep`.
        specimens: by name.
        profile: how hard; `quick` unless told.
        jobs: as in `sweep`.
        minutes: as in `sweep`.
        progress: as in `sweep`.
        kept: rows of an earlier run by specimen, which are not measured again.
        save: as in `sweep`.

    Returns:
        `specimens`, how many there are, and `tried`, how many of those were run on each case of which a law can be
        asked here; `asked`, how often a law had to notice one of them under a seed, on one case at least; `missed`, a
        line for each time that it did not; `rows`, the same by specimen; `measured`, how many of them this run has
        measured.
    """
    profile, kept = profile or load_profile("every-case"), kept or {}
    own = {name: laws for name, sick in specimens.items() if name not in kept and (laws := own_laws(sick))}
    checks = by_case([check for name in own for check in _checks(name, specimens[name], own[name], profile)])

    def so_far(answers: Mapping[int, Answer]) -> dict[str, Any]:
        left = {check.spec.name for number, check in enumerate(checks) if number not in answers}
        noticed: dict[str, dict[tuple[int, str], bool]] = defaultdict(dict)
        for number, (statuses, _) in answers.items():
            name, law = checks[number].spec.name, checks[number].law.name
            if law in own[name]:
                for seed, status in enumerate(statuses):
                    noticed[name][seed, law] = noticed[name].get((seed, law), False) or status.is_failure
        found = {name: _row(name, noticed[name]) for name in own if name not in left}
        rows = [kept.get(name) or found[name] for name in specimens if name in kept or name in found]
        return {"specimens": len(specimens), **summed(rows), "rows": rows, "measured": len(found)}

    saving = None if save is None else lambda found: save(so_far(found))
    answers = answers_of(checks, count, profile, jobs=jobs, minutes=minutes, progress=progress, save=saving)
    return so_far(answers)


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many specimens were tried, how often a law had to notice one, and a line for each time it did not."""
    return {
        "tried": len(rows),
        "asked": sum(row["asked"] for row in rows),
        "missed": [f"seed {seed}: {row['specimen']} · {law}" for row in rows for seed, law in row.get("missed", ())],
    }


def own_laws(sick: Disease) -> list[str]:
    """Return the laws that must notice a specimen on this device."""
    unmeasured = () if torch.cuda.is_available() else NEEDS_CUDA
    return [law for law in sick.caught_by if law not in unmeasured]


def _row(name: str, noticed: Mapping[tuple[int, str], bool]) -> dict[str, Any]:
    missed = [list(when) for when, is_noticed in sorted(noticed.items()) if not is_noticed]
    row = {"specimen": name, "asked": len(noticed)}
    return {**row, "missed": missed} if missed else row


def _checks(name: str, sick: Disease, own: Sequence[str], profile: Profile) -> list[Check]:
    needed = {law.name for law in with_required([law for law in LAWS if law.name in own], LAWS)}
    laws = [law for law in LAWS if law.name in needed]
    return checks_of([replace(sick.spec, name=name)], laws, profile, maker_of, known=LAWS)
