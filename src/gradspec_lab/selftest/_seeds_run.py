"""A run under many seeds that goes on from an earlier one: it measures what is missing, and what has changed since."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gradspec._record import Source, provenance, reusable
from gradspec.laws import LAWS
from gradspec.profile import device_name, load_profile
from gradspec_lab.selftest._diseased_seeds import diseased_specimens, own_laws, summed, sweep_diseased
from gradspec_lab.selftest._seeds import Failure, sound_specs, sweep
from gradspec_lab.selftest._seeds_record import Seeds
from gradspec_lab.selftest._standing import Standing, sources_of_seeds, specimens_of

Progress = Callable[[int, int, str], None]
#: What of a sweep is no total.
_APART = ("rows", "measured")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What of an earlier run is still valid."""

    #: What failed on the cases of sound specs, and the laws that these are held to again.
    rows: Mapping[tuple[str, str], Sequence[Failure]] = field(default_factory=dict)
    again: Collection[str] = ()
    #: Rows of diseased specimens.
    sick: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Seeds | None, today: Mapping[str, Source], facts: Mapping[str, Any], count: int) -> Kept:
        """Compare an earlier run with today's sources."""
        if known is None or known.swept["run"] != count or not reusable(known.provenance, facts):
            return cls()
        changed = frozenset(name for name, source in today.items() if not source.agrees(known.sources.get(name)))
        again = Standing({}, changed, LAWS).laws
        sound = {spec.name: {"sweep", f"harness {spec.kind}", f"spec {spec.name}"} for spec in sound_specs()}
        sick = {
            name: {"sweep", f"harness {one.spec.kind}", specimens_of(one.spec.kind)}
            for name, one in diseased_specimens().items()
            if not again & set(own_laws(one))
        }
        rows = {
            (row["spec"], row["case"]): [(seed, law, message) for seed, law, message in row.get("failures", ())]
            for row in known.rows
            if "case" in row and row["spec"] in sound and not changed & sound[row["spec"]]
        }
        specimens = {row["specimen"]: row for row in known.rows if "specimen" in row}
        return cls(
            rows=rows, again=again, sick={n: specimens[n] for n in sick if n in specimens and not changed & sick[n]}
        )


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
        known: an earlier run: what it found is not measured again where nothing that can change it has changed.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; what was not begun is left out.
        progress: called before each check.
        save: called twice a minute with the run as far as it has come.
    """
    profile, end = load_profile("quick"), time.monotonic() + 60 * minutes
    facts, today = provenance(device=device_name(profile.device), profile=asdict(profile)), sources_of_seeds()
    kept, sick = Kept.of(known, today, facts, count), diseased_specimens(names)
    if known and (kept.rows or kept.sick):
        facts["reused from"] = known.provenance.get("reused from", known.provenance.get("date", "an unknown date"))
    how: dict[str, Any] = {"profile": profile, "jobs": jobs, "progress": progress}

    def result(sound: Mapping[str, Any], diseased: Mapping[str, Any]) -> Seeds:
        swept, of_sick = ({k: v for k, v in one.items() if k not in _APART} for one in (sound, diseased))
        return Seeds(
            provenance=facts,
            sources=today,
            swept={**swept, "diseased": of_sick},
            rows=(*sound["rows"], *diseased["rows"]),
            measured=sound["measured"] + diseased["measured"],
        )

    def keep(sound: Mapping[str, Any], diseased: Mapping[str, Any]) -> None:
        if save:
            save(result(sound, diseased))

    rows = [kept.sick[name] for name in sick if name in kept.sick]
    untried = {"specimens": len(sick), **summed(rows), "rows": rows, "measured": 0}
    sound = sweep(
        count,
        specs=sound_specs(names),
        kept=kept.rows,
        again=kept.again,
        minutes=minutes,
        save=lambda found: keep(found, untried),
        **how,
    )
    left = (end - time.monotonic()) / 60
    return result(
        sound,
        sweep_diseased(count, sick, kept=kept.sick, minutes=left, save=lambda found: keep(sound, found), **how),
    )
