"""The only place where laws run: specs, laws and a profile in, a report out."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import torch

import gradspec
from gradspec.kind import spec_sheet
from gradspec.law import AnyTrial, Finding, Law, Status, TrialOf, Verdict, broken, raised, shown
from gradspec.laws import LAWS, SpecFaultError
from gradspec.make import Maker
from gradspec.profile import Profile, ProfileError, load_profile
from gradspec.promise import Case, Misuse, Spec
from gradspec.report import Report, Source
from gradspec.sheet import law_sheet, qualified_name
from gradspec.source import fingerprint, import_closure, package_root

#: progress(done, total, what is running now)
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One law on one case of one spec."""

    spec: Spec
    #: Where the spec stands, as the command line takes it.
    path: str
    law: Law
    case: str


def verify(
    specs: Sequence[Spec],
    laws: Sequence[Law] | None = None,
    profile: Profile | None = None,
    *,
    seed: int = 0,
    case: str | None = None,
    paths: Mapping[str, str] | None = None,
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
        progress: called before each check, and once at the end.

    Returns:
        The report. A spec or a law that raises is a verdict in it, never an exception.

    Raises:
        ValueError: two specs of one name, or a profile that names an unknown law.
    """
    laws, profile = tuple(laws or LAWS), profile or load_profile("quick")
    checks = plan(specs, laws, profile, seed=seed, case=case, paths=paths)
    kinds = {spec.kind for spec in specs}
    laws = tuple(law for law in laws if kinds.intersection(law.kinds))
    verdicts: list[Verdict] = []
    prior: dict[tuple[str, str], dict[str, Status]] = {}
    for done, check in enumerate(checks):
        if progress:
            progress(done, len(checks), f"{check.spec.name} · {check.law.name} · {check.case}")
        known = prior.setdefault((check.spec.name, check.case), {})
        verdicts.append(run_check(check, profile, seed=seed, prior=known))
        known[check.law.name] = verdicts[-1].status
    if progress:
        progress(len(checks), len(checks), "done")
    return Report(
        provenance=provenance(profile, seed),
        sheets={spec.name: spec_sheet(spec, (paths or {}).get(spec.name, "")) for spec in specs},
        laws={law.name: law_sheet(law) for law in laws},
        sources=_sources(specs, laws),
        verdicts=tuple(verdicts),
    )


def plan(
    specs: Sequence[Spec],
    laws: Sequence[Law] | None = None,
    profile: Profile | None = None,
    *,
    seed: int = 0,
    case: str | None = None,
    paths: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks of a run, in the order of specs, laws, cases. Arguments as for `verify`."""
    laws, profile = tuple(laws or LAWS), profile or load_profile("quick")
    names = [spec.name for spec in specs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two specs are named {repeated[0]!r}: a name is unique in a report")
    if profile.device.startswith("cuda") and not torch.cuda.is_available():
        raise ProfileError(f"profile {profile.name!r} needs a CUDA device, and torch finds none: choose quick or full")
    if unknown := set(profile.laws) - {law.name for law in laws}:
        raise ValueError(f"profile {profile.name!r} names the unknown law {sorted(unknown)[0]!r}")
    checks = []
    for spec in specs:
        mine = [law for law in laws if spec.kind in law.kinds]
        subjects = {over: _subjects(spec, over, profile, seed) for over in {law.over for law in mine}}
        checks += [
            Check(spec=spec, path=(paths or {}).get(spec.name, ""), law=law, case=name)
            for law in mine
            if not profile.laws or law.name in profile.laws
            for name in subjects[law.over]
            if case in (None, name)
        ]
    return checks


def run_check(check: Check, profile: Profile, *, seed: int = 0, prior: Mapping[str, Status] | None = None) -> Verdict:
    """Run one law on one case, on tensors that it alone owns and with random numbers that it alone draws.

    Args:
        check: what to run.
        profile: how hard.
        seed: of all random numbers.
        prior: the statuses of this case under the laws that ran before.
    """
    started = time.perf_counter()
    devices = list(range(torch.cuda.device_count())) if profile.device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        finding = _find(check, profile, seed, prior or {})
    return Verdict(
        spec=check.spec.name,
        law=check.law.name,
        case=check.case,
        finding=finding,
        seconds=time.perf_counter() - started,
        again=_again(check, profile, seed),
    )


def _find(check: Check, profile: Profile, seed: int, prior: Mapping[str, Status]) -> Finding:
    law, spec = check.law, check.spec
    for needed in law.requires:
        if prior.get(needed) is Status.ERROR:
            return Finding(status=Status.NOT_MEASURED, message=f"needs the law {needed}, which ended in an error")
    try:
        trial = _trial(check, profile, seed)
    except Exception as error:
        return Finding(status=Status.ERROR, message=f"the case could not be made: {shown(error)}")
    try:
        finding = law.check(trial)
    except SpecFaultError as error:
        finding = Finding(status=Status.ERROR, message=str(error))
    except Exception as error:
        # What a call raises where its law says that it works is a finding about the function.
        finding = raised(error)
    if law.promise is None or getattr(spec.supports, law.promise):
        return finding
    return _judge_refusal(finding, law)


def _judge_refusal(finding: Finding, law: Law) -> Finding:
    """A promise of no support is kept by raising; silence, right or wrong, breaks it."""
    if "raised" in finding.details:
        return Finding(status=Status.REFUSED_AS_DECLARED, message=finding.message, details=finding.details)
    if finding.status is Status.HOLDS:
        return broken(f"works, though the spec promises no {law.promise}: change `supports`")
    return finding


def _trial(check: Check, profile: Profile, seed: int) -> AnyTrial:
    spec, make = check.spec, Maker(seed, profile.device)
    misuse = None
    if check.law.over == "documents":
        case = Case(name=check.case, args=())
    elif check.law.over == "misuses":
        misuse = next(m for m in _misuses(spec, make) if m.case.name == check.case)
        case = misuse.case
    else:
        case = next(c for c in spec.cases(make) if c.name == check.case)
    return TrialOf(spec=spec, case=case, profile=profile, seed=seed, misuse=misuse)


def _subjects(spec: Spec, over: str, profile: Profile, seed: int) -> list[str]:
    make = Maker(seed, profile.device)
    names: list[str] = []
    try:
        if over == "documents":
            names += [qualified_name(document) for document in spec.documents]
        elif over == "misuses":
            names += [misuse.case.name for misuse in _misuses(spec, make)]
        else:
            names += [case.name for case in spec.cases(make)]
    except Exception:
        names.append("(making the cases)")  # running it raises again, and gives the verdict its message
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"spec {spec.name!r} has two cases named {repeated[0]!r}")
    return names


def _misuses(spec: Spec, make: Maker) -> Iterator[Misuse]:
    return spec.raises(make) if spec.raises else iter(())


def _again(check: Check, profile: Profile, seed: int) -> str:
    target = check.path or "TARGET"
    words = ["gradspec", "check", target, "--law", check.law.name, "--case", check.case, "--seed", str(seed)]
    return shlex.join(words + ([] if profile.name == "quick" else ["--profile", profile.name]))


def _sources(specs: Sequence[Spec], laws: Sequence[Law]) -> dict[str, Source]:
    modules = {f"spec {spec.name}": spec.modules for spec in specs}
    modules |= {f"law {law.name}": (getattr(law.check, "__module__", None) or "__main__",) for law in laws}
    return {name: source_of(*found) for name, found in modules.items()}


def source_of(module: str, *others: str) -> Source:
    """Return the source that a module stands on, and of other modules what is in the same package."""
    top = module.partition(".")[0]
    root = package_root(top)
    together = (module, *(other for other in others if root and other.partition(".")[0] == top))
    files = tuple(sorted({file for name in together for file in import_closure(name)}))
    return Source(package=top if root else "", files=files, hash=fingerprint(files, root))


def provenance(profile: Profile, seed: int) -> dict[str, Any]:
    """Return where, when and on what versions a measurement was made."""
    cuda = profile.device.startswith("cuda") and torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "gradspec": gradspec.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "device": torch.cuda.get_device_name() if cuda else profile.device,
        "seed": seed,
        "profile": asdict(profile),
    }


def _commit() -> str:
    """Return the commit of the working directory, "+" behind it if something has changed since; "" outside git."""
    try:
        answers = [
            subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=Path.cwd()).stdout.strip()
            for words in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answers[0] + ("+" if answers[1] else "")
