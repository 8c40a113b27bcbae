"""The only place where laws run: specs, laws and a profile in, a report out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradspec._parallel import Progress, run_checks
from gradspec._plan import Check, plan
from gradspec._provenance import provenance, sources
from gradspec.kind import spec_sheet
from gradspec.law import Law
from gradspec.laws import LAWS
from gradspec.profile import Profile, load_profile
from gradspec.promise import Spec
from gradspec.report import Report
from gradspec.sheet import law_sheet


def verify(
    specs: Sequence[Spec],
    laws: Sequence[Law] | None = None,
    profile: Profile | None = None,
    *,
    seed: int = 0,
    case: str | None = None,
    paths: Mapping[str, str] | None = None,
    isolate: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Hold specs to laws.

    Args:
        specs: what is verified; their names are unique.
        laws: the laws to run, each on the specs of its kinds; ours unless told. The profile may choose among them.
        profile: how hard; `quick` unless told.
        seed: of all random numbers: the same seed gives the same verdicts.
        case: run this case alone.
        paths: where each spec stands, by name; it is used in the command that runs a check again.
        isolate: run each check in a child process, so that a crash or a hang is a verdict; None for: where this
            machine can (Linux, no CUDA).
        jobs: how many child processes at a time; as many as there are processors, where that pays. The report is the
            same for any number.
        progress: called before each check, and once at the end.

    Returns:
        The report. A spec or a law that raises is a verdict in it, never an exception.

    Raises:
        ValueError: two specs of one name, or a profile that names an unknown law.
    """
    laws, profile = tuple(laws or LAWS), profile or load_profile("quick")
    checks = plan(specs, laws, profile, seed=seed, case=case, paths=paths)
    return run_plan(checks, specs, laws, profile, seed=seed, paths=paths, isolate=isolate, jobs=jobs, progress=progress)


def run_plan(
    checks: Sequence[Check],
    specs: Sequence[Spec],
    laws: Sequence[Law],
    profile: Profile,
    *,
    seed: int = 0,
    paths: Mapping[str, str] | None = None,
    isolate: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run checks that are planned, and report them. Arguments as for `verify`, which plans them first."""
    kinds = {spec.kind for spec in specs}
    laws = tuple(law for law in laws if kinds.intersection(law.kinds))
    verdicts = run_checks(checks, profile, seed=seed, isolate=isolate, jobs=jobs, progress=progress)
    return Report(
        provenance=provenance(profile, seed),
        sheets={spec.name: spec_sheet(spec, (paths or {}).get(spec.name, "")) for spec in specs},
        laws={law.name: law_sheet(law) for law in laws},
        sources=sources(specs, laws),
        verdicts=verdicts,
    )
