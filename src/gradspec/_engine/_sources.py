"""What the verdicts of a run depend on: its specs, its laws, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradspec._record import Reach, Source, reach_from, root_of
from gradspec.law import Law
from gradspec.spec import Spec
from gradspec.spec._kinds import kind_of

#: What runs each check, whatever its law.
HARNESS = ("gradspec._engine._check:run_check", "gradspec._engine._session:Session")


def sources(
    specs: Sequence[Spec],
    laws: Iterable[Law],
    paths: Mapping[str, str] | None = None,
    given: Mapping[str, Source] | None = None,
) -> dict[str, Source]:
    """Return what each spec and law depends on, and what runs them: by "spec NAME", "law NAME" and "harness KIND".

    Args:
        specs: the specs of the run.
        laws: the laws that run, and those that can decide what they say.
        paths: where each spec is, by name, as the command line takes it.
        given: sources of specs that are known already, by "spec NAME": of one that was made of something published.
    """
    paths, given = paths or {}, given or {}
    roots = {f"spec {spec.name}": root_of(spec, spec.modules, paths.get(spec.name, "")) for spec in specs}
    reach = reach_from()
    documents = {f"spec {spec.name}": [_home_of(document) for document in spec.documented] for spec in specs}
    found = {
        name: given.get(name) or Source.of(reach, *where, documents=documents[name]) for name, where in roots.items()
    }
    for law in laws:
        home = getattr(law.check, "__module__", None) or "__main__"
        found[f"law {law.name}"] = Source.of(reach, *root_of(law, (home,)))
    found |= harness({spec.kind for spec in specs}, reach)
    return found


def harness(kinds: Iterable[str], reach: Reach) -> dict[str, Source]:
    """Return what runs the checks of each kind, by "harness KIND"."""
    made_by = {kind: kind_of(kind).maker for kind in sorted(kinds)}
    return {
        f"harness {kind}": Source.of(reach, *HARNESS, f"{maker.__module__}:{maker.__qualname__}")
        for kind, maker in made_by.items()
    }


def _home_of(document: Any) -> str:
    """Return the root of a class or function with examples: that of its module where it is defined within another."""
    name = getattr(document, "__qualname__", "").partition(".")[0]
    (home,) = root_of(document, [document.__module__]) or (document.__module__,)
    return f"{home}:{name}" if ":" not in home and name.isidentifier() else home
