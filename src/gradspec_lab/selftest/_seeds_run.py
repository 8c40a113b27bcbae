"""A run under many seeds that goes on from an earlier one: it measures what is missing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gradspec._record import provenance
from gradspec.profile import device_name, load_profile
from gradspec_lab._tree import files_key, is_of_this_tree
from gradspec_lab.selftest._diseased_seeds import diseased_specimens, summed, sweep_diseased
from gradspec_lab.selftest._seeds import sound_specs, sweep
from gradspec_lab.selftest._seeds_record import Seeds

Progress = Callable[[int, int, str], None]
#: What of a sweep is no total.
_APART = ("rows", "measured")


def seeds(
    count: int,
    names: Sequence[str] = (),
    *,
    known: Seeds | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Progress | None = None,
    save: Callable[[Seeds], None] | None = None,
) -> Seeds:
    """Hold the sound to all laws, and the diseased to their own, under the seeds 0, 1, 2 ...

    Args:
        count: how many seeds.
        names: parts of names; only what has one of them in its name. All of it unless told.
        known: an earlier run: what it holds is not measured again, if it is of the same files and versions.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; what was not begun is left out.
        progress: called before each check.
        save: called twice a minute with the run as far as it has come.
    """
    profile, end = load_profile("every-case"), time.monotonic() + 60 * minutes
    facts = provenance(device=device_name(profile.device), profile=asdict(profile), files=files_key())
    rows: Sequence[Mapping[str, Any]] = ()
    if known is not None and known.swept["run"] == count and is_of_this_tree(known.provenance, facts):
        rows = known.rows
    kept = {
        (row["spec"], row["case"]): [(seed, law, message) for seed, law, message in row.get("failures", ())]
        for row in rows
        if "case" in row
    }
    sick = diseased_specimens(names)
    of_sick = {row["specimen"]: row for row in rows if row.get("specimen") in sick}
    how: dict[str, Any] = {"profile": profile, "jobs": jobs, "progress": progress}

    def result(sound: Mapping[str, Any], diseased: Mapping[str, Any]) -> Seeds:
        swept, of_diseased = ({k: v for k, v in one.items() if k not in _APART} for one in (sound, diseased))
        return Seeds(
            provenance=facts,
            swept={**swept, "diseased": of_diseased},
            rows=(*sound["rows"], *diseased["rows"]),
            measured=sound["measured"] + diseased["measured"],
        )

    def keep(sound: Mapping[str, Any], diseased: Mapping[str, Any]) -> None:
        if save:
            save(result(sound, diseased))

    known_sick = [of_sick[name] for name in sick if name in of_sick]
    untried = {"specimens": len(sick), **summed(known_sick), "rows": known_sick, "measured": 0}
    sound = sweep(
        count,
        specs=sound_specs(names),
        kept=kept,
        minutes=minutes,
        save=lambda found: keep(found, untried),
        **how,
    )
    left = (end - time.monotonic()) / 60
    return result(
        sound,
        sweep_diseased(count, sick, kept=of_sick, minutes=left, save=lambda found: keep(sound, found), **how),
    )
