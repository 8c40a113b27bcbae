"""The self-test: sound and diseased specimens and mutants, each held to the laws, and torch's checkers beside them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from gradspec._engine._child import Child
from gradspec._engine._plan import Maker, checks_of, with_required
from gradspec._engine._pool import processors
from gradspec._engine._session import Session
from gradspec._record import provenance
from gradspec.functions import FUNCTIONS
from gradspec.law import Finding, Law
from gradspec.laws import LAWS
from gradspec.profile import Profile, device_name, load_profile
from gradspec.selftest._mutants import STAGES, Mutant, MutantResult, judge_mutant, mutants, warm_up
from gradspec.selftest._record import Matrix, Subject
from gradspec.selftest._standing import Standing, function_of, sources, specimens_of
from gradspec.selftest._stock import TOOLS, first_case, judge
from gradspec.selftest._workers import deal
from gradspec.selftest.specimens import DISEASED, HONEST
from gradspec.spec import FunctionSpec, Spec
from gradspec.spec._kinds import maker_of

#: progress(done, total, what came last)
Progress = Callable[[int, int, str], None]
#: One subject that is still to be judged.
Task = Callable[[], Subject]
NEEDS_CUDA = ("parity",)


def selftest(
    names: Sequence[str] = (),
    *,
    exactly: bool = False,
    specimens: bool = True,
    mutated: bool = True,
    stock: bool = False,
    seed: int = 0,
    profile: Profile | None = None,
    jobs: int | None = None,
    minutes: float = math.inf,
    progress: Progress | None = None,
    known: Matrix | None = None,
) -> Matrix:
    """Hold specimens and mutants to the laws.

    Args:
        names: words; only what has one of them in its name is run. All of it unless told.
        exactly: take them for whole names.
        specimens: whether the sound and the diseased specimens are run.
        mutated: whether the mutants are run.
        stock: whether torch's own checkers are asked about the specimens too.
        seed: of all random numbers.
        profile: how hard; `quick` unless told.
        jobs: in how many processes; as many as there are processors, unless told.
        minutes: when to stop; the matrix then holds what was tried, in an order in which no function comes first.
        progress: called after each subject.
        known: an earlier matrix: what it found is not measured again where nothing that can change it has changed.

    Raises:
        ValueError: nothing has one of these names.
    """
    import torch._dynamo  # noqa: F401 - imported here, each child has it: it takes seconds

    profile, jobs = profile or load_profile("quick"), jobs or processors()
    every = list(mutants(FUNCTIONS))
    population = {"honest": len(HONEST), "diseased": len(DISEASED), "mutant": len(every)}
    facts = provenance(device=device_name(profile.device), seed=seed, profile=asdict(profile))
    today = sources()
    standing = Standing.of(known, today, facts, LAWS)
    run = _Run(LAWS, maker_of, profile, seed, stock)
    tasks: dict[str, Task] = {}
    if specimens:
        tasks |= {spec.name: run.specimen(spec, "honest", (), *_stands(standing, spec)) for spec in HONEST}
        for name, sick in DISEASED.items():
            spec, own = replace(sick.spec, name=name), tuple(sick.caught_by)
            tasks[name] = run.specimen(spec, "diseased", own, *_stands(standing, spec))
    if mutated:
        for mutant in every:
            home = function_of(mutant.spec.name)
            tasks[mutant.name] = run.mutant(mutant, home, *standing.of_laws(mutant.name, home))
    asked = set(names) if exactly else {name for name in tasks if not names or any(word in name for word in names)}
    chosen = {name: task for name, task in tasks.items() if name in asked}
    if not chosen:
        raise ValueError(f"no specimen and no mutant is named {', '.join(map(repr, names))}")
    found = {name: standing.rows[name] for name in tasks if name not in chosen and standing.is_current(name)}
    found |= {name: standing.rows[name] for name in chosen if standing.is_current(name, stock=stock)}
    order, started = [name for name in chosen if name not in found], time.monotonic()
    for spec in {mutant.spec.name: mutant.spec for mutant in every if mutant.name in order}.values():
        warm_up(spec, LAWS, profile, maker_of, seed=seed)
    random.Random(seed).shuffle(order)
    done = 0

    def take(subject: Subject) -> None:
        nonlocal done
        found[subject.name] = subject
        done += 1
        if progress:
            progress(done, len(order), subject.name)

    if order:
        deal(lambda name: chosen[name](), order, take, jobs=jobs, on=lambda: time.monotonic() <= started + 60 * minutes)
    if known is not None and not done and len(found) == len(known.subjects):
        facts |= {name: known.provenance[name] for name in ("date", "commit")}
    return Matrix(
        provenance=facts | {"stages": list(STAGES)},
        sources=today,
        population=population,
        subjects=tuple(found[name] for name in tasks if name in found),
        measured=done,
    )


@dataclass(frozen=True)
class _Run:
    """How subjects are judged in a run, and what is known of them."""

    laws: Sequence[Law]
    makers: Callable[[str], Maker]
    profile: Profile
    seed: int
    stock: bool

    def mutant(self, mutant: Mutant, home: str, known: Subject | None, moved: frozenset[str]) -> Task:
        """Return the task of judging a mutant: by all laws, or by those that have moved since it was known."""

        def judged() -> Subject:
            before = None
            if known is not None:
                before = MutantResult(name=known.name, spec="", killed_by=known.killed_by, stage=known.stage)
            found = judge_mutant(
                mutant, self.laws, self.profile, self.makers, seed=self.seed, known=before, moved=moved
            )
            return subject_of(mutant, found, home)

        return judged

    def specimen(
        self,
        spec: Spec,
        sort: str,
        own: tuple[str, ...],
        home: str,
        known: Subject | None,
        moved: frozenset[str],
        knows_stock: bool,
    ) -> Task:
        """Return the task of judging a specimen: by all laws, or by those that have moved since it was known."""

        def judged() -> Subject:
            before = known.killed_by if known is not None else ()
            asked = moved if known is not None else None
            killers = set(self._killers(spec, own, whole=sort == "honest", asked=asked))
            killers |= {name for name in before if name not in moved}
            opinions: Mapping[str, str] = known.stock if known is not None and knows_stock else {}
            if self.stock and not opinions and isinstance(spec, FunctionSpec):
                opinions = dict(_stock(spec, self.seed))
            return Subject(
                sort=sort,
                name=spec.name,
                group=spec.kind,
                source=home,
                killed_by=tuple(law.name for law in self.laws if law.name in killers),
                own=own,
                not_measured=() if torch.cuda.is_available() else tuple(law for law in own if law in NEEDS_CUDA),
                stock=opinions,
            )

        return judged

    def _killers(self, spec: Spec, own: Sequence[str], *, whole: bool, asked: Collection[str] | None) -> Iterator[str]:
        """Yield the laws that a specimen breaks: its own on every case, each cheap one on the first; or all on all."""
        needed = {law.name for law in with_required([law for law in self.laws if law.name in own], self.laws)}
        laws = [law for law in self.laws if whole or law.cost == "ms" or law.name in needed]
        checks = checks_of([spec], laws, self.profile, self.makers, seed=self.seed)
        first = {check.law.name: check.case for check in reversed(checks)}
        checks = [c for c in checks if whole or c.law.name in needed or c.case == first[c.law.name]]
        wanted = [check for check in checks if asked is None or check.law.name in asked]
        if wanted:
            with Session(checks, self.profile, seed=self.seed, silent=True) as session:
                for check in wanted:
                    if session.run(check).status.is_failure:
                        yield check.law.name


def _stands(standing: Standing, spec: Spec) -> tuple[str, Subject | None, frozenset[str], bool]:
    """Return what a specimen depends on, what is known of it, and which laws are asked again."""
    home = specimens_of(spec.kind)
    known, moved = standing.of_laws(spec.name, home)
    return home, known, moved, known is not None and bool(known.stock) and not standing.moved("stock")


def subject_of(mutant: Mutant, found: MutantResult, source: str = "") -> Subject:
    """Return what became of a mutant."""
    return Subject(
        sort="mutant",
        name=found.name,
        group=mutant.cls.__name__,
        source=source,
        killed_by=found.killed_by,
        stage=found.stage,
        crash=found.crash,
    )


def _stock(spec: FunctionSpec, seed: int) -> Iterator[tuple[str, str]]:
    """Yield what each of torch's checkers says of a function, in a process that it may kill."""
    case = first_case(spec, seed)
    for tool in TOOLS:

        def ask(tool: str) -> Any:
            return judge(tool, spec, case, seed)

        with Child(ask, seconds=120, silent=True) as child:
            answer = child.ask(tool)
        yield tool, answer.message if isinstance(answer, Finding) else answer
