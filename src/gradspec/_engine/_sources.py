"""The files that the verdicts of a run depend on: its specs, its laws and the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gradspec._record import Source, roots_of
from gradspec.law import Law
from gradspec.spec import Spec
from gradspec.spec._kinds import kind_of

#: What runs each check, whatever its law: with its own laws, all of it counts.
RUNS = "gradspec"


def sources(
    specs: Sequence[Spec],
    laws: Iterable[Law],
    paths: Mapping[str, str] | None = None,
    given: Mapping[str, Source] | None = None,
    *,
    since: float | None = None,
) -> dict[str, Source]:
    """Return what each spec and law depends on, by "spec NAME" and "law NAME".

    Args:
        specs: the specs of the run.
        laws: the laws that run, and those that can decide what they say.
        paths: where each spec is, by name, as the command line takes it.
        given: sources of specs that are known already, by "spec NAME": of one that was made of something published.
        since: when the run began; what has changed later has no key.
    """
    paths, found = paths or {}, dict[str, Source]()
    for spec in specs:
        roots = roots_of((*spec.modules, kind_of(spec.kind).maker.__module__), paths.get(spec.name, ""))
        known = (given or {}).get(f"spec {spec.name}")
        found[f"spec {spec.name}"] = known or Source.of(*roots, since=since)
    by_home, ours = dict[str, Source](), Source.of(RUNS, since=since)
    for law in laws:
        home = getattr(law.check, "__module__", None) or "__main__"
        if home not in by_home:
            named = roots_of((home,))
            roots = tuple(dict.fromkeys((RUNS, *named))) if named else ()
            # A module of ours reaches all of ours, as the package does.
            is_ours = home.partition(".")[0] == RUNS
            by_home[home] = replace(ours, roots=roots) if is_ours else Source.of(*roots, since=since)
        found[f"law {law.name}"] = by_home[home]
    return found
