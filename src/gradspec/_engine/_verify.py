"""The only place where laws run: specs, laws and a profile in, a report out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from gradspec._engine._autograd import settle
from gradspec._engine._check import rerun
from gradspec._engine._named import laws_of
from gradspec._engine._parallel import Progress, run_checks
from gradspec._engine._plan import Check, plan, with_roots
from gradspec._engine._reuse import current, known_of, made_when
from gradspec._engine._sources import sources
from gradspec._engine._turn import one_at_a_time
from gradspec._engine._vacuous import settled, unsettled
from gradspec._record import Source, SourcesLater, provenance
from gradspec.law import Law, Verdict
from gradspec.laws import LAWS
from gradspec.profile import Profile, device_name, load_profile
from gradspec.report import Report
from gradspec.spec import Spec
from gradspec.spec._kinds import spec_sheet

#: With the import, which comes before the first test that compiles.
settle()


@one_at_a_time
def verify(
    specs: Sequence[Spec],
    laws: Sequence[Law | str] | None = None,
    profile: Profile | None = None,
    *,
    seed: int = 0,
    case: str | None = None,
    paths: Mapping[str, str] | None = None,
    isolate: bool | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    known: Report | Sequence[Report] | None = None,
) -> Report:
    """Hold specs to laws; calls from several threads wait for one another.

    Args:
        specs: what is verified; their names are unique.
        laws: the laws to run, or the names of ours, as ["vjp"]; all of ours unless told. Each runs on the specs of its
            kinds, and the profile may choose among them.
        profile: how hard; `quick` unless told.
        seed: of all random numbers: the same seed gives the same verdicts.
        case: run only this case.
        paths: where each spec is, by name; it is used in the command that runs a check again.
        isolate: run each check in a child process, so that a crash or a hang is a verdict; None for: where this
            machine can (Linux, no CUDA).
        jobs: how many child processes at a time; as many as there are processors, where that pays. The report is the
            same for any number.
        progress: called before each check, and once at the end.
        known: an earlier report, or those of a record. Their verdicts are kept, and not measured again, if the files of
            the user's own packages that the spec reaches by imports are the same, and profile, seed, versions and kind
            of machine are, too.

    Returns:
        The report. A spec or a law that raises is a verdict in it, never an exception.

    Raises:
        ValueError: two specs of one name, or an unknown law that is named here or in the profile.
    """
    laws, profile = laws_of(laws), profile or load_profile("quick")
    checks = plan(specs, laws, profile, seed=seed, case=case, paths=paths)
    return run_plan(
        checks,
        specs,
        laws,
        profile,
        seed=seed,
        paths=paths,
        isolate=isolate,
        jobs=jobs,
        progress=progress,
        known=known,
        whole=case is None,
    )


@one_at_a_time
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
    known: Report | Sequence[Report] | None = None,
    given: Mapping[str, Source] | None = None,
    keep: Callable[[Report], None] | None = None,
    whole: bool = True,
) -> Report:
    """Run checks that are planned, and report them.

    Args:
        checks: what `plan` returned, or a part of it.
        specs, laws, profile, seed, paths, isolate, jobs, progress, known: as `verify` takes them.
        given: sources of specs that are known already, by "spec NAME".
        keep: called with what was measured so far, if the run is interrupted.
        whole: whether these are all cases of their specs, so that it can be said that none of them shows anything.
    """
    report = blank(specs, laws, profile, seed=seed, paths=paths, given=given)
    before = known_of(known, report)
    reused = current(before, report, checks) if before is not None else {}
    found: dict[int, Verdict] = {
        number: replace(unsettled(reused[check.cell]), rerun=rerun(check, profile, seed))
        for number, check in enumerate(checks)
        if check.cell in reused
    }

    def so_far() -> Report:
        verdicts = tuple(found[number] for number in sorted(found))
        made = made_when(before, report.provenance, reused=len(reused), measured=len(verdicts) - len(reused))
        return replace(report, provenance=made, verdicts=verdicts, reused=len(reused))

    try:
        run_checks(checks, profile, seed=seed, isolate=isolate, jobs=jobs, progress=progress, found=found)
    except KeyboardInterrupt:
        if keep is not None:
            keep(replace(so_far(), missing=tuple(c.cell for number, c in enumerate(checks) if number not in found)))
        raise
    report = so_far()
    return replace(report, verdicts=settled(report.verdicts)) if whole else report


def blank(
    specs: Sequence[Spec],
    laws: Sequence[Law],
    profile: Profile,
    *,
    seed: int = 0,
    paths: Mapping[str, str] | None = None,
    given: Mapping[str, Source] | None = None,
) -> Report:
    """Return the report of a run before it has a verdict."""
    kinds = {spec.kind for spec in specs}
    laws = tuple(law for law in laws if any(map(law.judges, kinds)))
    began = time.time()
    stands_on = SourcesLater(lambda: sources(specs, with_roots(laws, LAWS), paths, given, since=began))
    return Report(
        provenance=provenance(device=device_name(profile.device), seed=seed, profile=asdict(profile)),
        sheets={spec.name: spec_sheet(spec, (paths or {}).get(spec.name, "")) for spec in specs},
        laws={law.name: law.sheet for law in laws},
        sources=stands_on,
    )
