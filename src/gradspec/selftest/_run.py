"""The self-test: sound and diseased specimens and mutants, each held to the laws, and torch's checkers beside them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradspec._dealing import processors
from gradspec._isolation import Child
from gradspec._plan import plan
from gradspec._provenance import provenance, source_of
from gradspec._session import Session
from gradspec.functions import FUNCTIONS
from gradspec.law import Finding, Law
from gradspec.laws import LAWS
from gradspec.profile import Profile, load_profile
from gradspec.promise import Spec
from gradspec.report import Source
from gradspec.selftest._mutants import STAGES, Autopsy, Mutant, autopsy, mutants, warm_up
from gradspec.selftest._record import Matrix, Subject
from gradspec.selftest._stock import TOOLS, first_case, judge
from gradspec.selftest._workers import made_by
from gradspec.selftest.specimens import DISEASED, HONEST
from gradspec.spec import FunctionSpec

#: progress(done, total, what came last)
Progress = Callable[[int, int, str], None]
#: One subject that is still to be judged.
Task = Callable[[], Subject]
NEEDS_CUDA = ("parity",)


def selftest(
    names: Sequence[str] = (),
    *,
    specimens: bool = True,
    mutated: bool = True,
    stock: bool = False,
    seed: int = 0,
    profile: Profile | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Progress | None = None,
) -> Matrix:
    """Hold specimens and mutants to the laws.

    Args:
        names: words; only what has one of them in its name is run. All of it unless told.
        specimens: whether the sound and the diseased specimens are run.
        mutated: whether the mutants are run.
        stock: whether torch's own checkers are asked about the specimens too.
        seed: of all random numbers.
        profile: how hard; `quick` unless told.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; the matrix then holds what was tried, in an order in which no function comes first.
        progress: called after each subject.

    Raises:
        ValueError: nothing has one of these names.
    """
    import torch._dynamo  # noqa: F401 - imported here, each child has it: it takes seconds

    profile, jobs = profile or load_profile("quick"), jobs or processors()
    every = list(mutants(FUNCTIONS))
    population = {"honest": len(HONEST), "diseased": len(DISEASED), "mutant": len(every)}
    tasks: dict[str, Task] = {}
    if specimens:
        tasks |= {spec.name: _specimen(spec, "honest", (), profile, seed, stock) for spec in HONEST}
        for name, sick in DISEASED.items():
            tasks[name] = _specimen(sick.spec, "diseased", tuple(sick.caught_by), profile, seed, stock, name=name)
    if mutated:
        tasks |= {mutant.name: _mutant(mutant, profile, seed) for mutant in every}
    chosen = {name: task for name, task in tasks.items() if not names or any(word in name for word in names)}
    if not chosen:
        raise ValueError(f"no specimen and no mutant is named {', '.join(map(repr, names))}")
    for spec in {mutant.spec.name: mutant.spec for mutant in every if mutant.name in chosen}.values():
        warm_up(spec, LAWS, profile, seed=seed)
    found: dict[str, Subject] = {}
    order, started = list(chosen), time.monotonic()
    random.Random(seed).shuffle(order)
    for subject in made_by(lambda name: chosen[name](), order, jobs):
        found[subject.name] = subject
        if progress:
            progress(len(found), len(chosen), subject.name)
        if time.monotonic() > started + 60 * minutes:
            break
    how = {"jobs": jobs, "seconds": round(time.monotonic() - started), "stages": list(STAGES)}
    return Matrix(
        provenance=provenance(profile, seed) | how,
        sources=measured_sources(),
        population=population,
        subjects=tuple(found[name] for name in chosen if name in found),
    )


def measured_sources() -> dict[str, Source]:
    """Return the source of all that a self-test measures."""
    homes = {"laws": "laws", "specimens": "selftest.specimens", "functions": "functions"}
    return {
        name: source_of(f"gradspec.{home}") for name, home in (homes | {"mutations": "selftest._mutations"}).items()
    }


def _mutant(mutant: Mutant, profile: Profile, seed: int) -> Task:
    return lambda: subject_of(mutant, autopsy(mutant, LAWS, profile, seed=seed))


def subject_of(mutant: Mutant, found: Autopsy) -> Subject:
    """Return what became of a mutant."""
    return Subject(
        sort="mutant", name=found.name, group=mutant.cls.__name__, killed_by=found.killed_by, crash=found.crash
    )


def _specimen(
    spec: Spec, sort: str, own: tuple[str, ...], profile: Profile, seed: int, stock: bool, *, name: str = ""
) -> Task:
    def judged() -> Subject:
        known = replace(spec, name=name or spec.name)
        return Subject(
            sort=sort,
            name=known.name,
            group=known.kind,
            killed_by=tuple(dict.fromkeys(_killers(known, own, profile, seed, whole=sort == "honest"))),
            own=own,
            not_measured=() if torch.cuda.is_available() else tuple(law for law in own if law in NEEDS_CUDA),
            stock=dict(_stock(known, seed)) if stock and isinstance(known, FunctionSpec) else {},
        )

    return judged


def _killers(spec: Spec, own: Sequence[str], profile: Profile, seed: int, *, whole: bool) -> Iterator[str]:
    """Yield the laws that a specimen breaks: its own on every case, and each cheap one on the first; or all on all."""
    needed = _with_required(own)
    laws = [law for law in LAWS if whole or law.cost == "ms" or law.name in needed]
    checks = plan([spec], laws, profile, seed=seed)
    first = {check.law.name: check.case for check in reversed(checks)}
    checks = [c for c in checks if whole or c.law.name in needed or c.case == first[c.law.name]]
    with Session(checks, profile, seed=seed, silent=True) as session:
        for check in checks:
            if session.run(check).status.is_failure:
                yield check.law.name


def _with_required(names: Sequence[str]) -> set[str]:
    by_name: dict[str, Law] = {law.name: law for law in LAWS}
    return {needed for name in names for needed in (name, *by_name[name].requires)}


def _stock(spec: FunctionSpec, seed: int) -> Iterator[tuple[str, str]]:
    """Yield what each of torch's checkers says of a function, in a process that it may kill."""
    case = first_case(spec, seed)
    for tool in TOOLS:

        def ask(tool: str) -> Any:
            return judge(tool, spec, case, seed)

        with Child(ask, seconds=120, silent=True) as child:
            answer = child.ask(tool)
        yield tool, answer.message if isinstance(answer, Finding) else answer
