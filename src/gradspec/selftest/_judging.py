"""How the subjects of a self-test are judged, each in a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradspec._engine._child import Child
from gradspec._engine._plan import Maker, checks_of, with_required
from gradspec._engine._session import Session
from gradspec.law import Finding, Law
from gradspec.profile import Profile
from gradspec.selftest._mutants import Mutant, MutantResult, judge_mutant
from gradspec.selftest._record import Subject
from gradspec.selftest._stock import TOOLS, cases_for, judge
from gradspec.spec import FunctionSpec, Spec

#: One subject that is still to be judged.
Task = Callable[[], Subject]
#: The laws that measure nothing without a CUDA device.
NEEDS_CUDA = ("parity", "cuda_graph")


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
    for tool in TOOLS:
        cases = cases_for(tool, spec, seed)

        def ask(number: int, tool: str = tool, cases: Sequence[Any] = cases) -> Any:
            return judge(tool, spec, cases[number], seed)

        answer: Any = ""
        with Child(ask, seconds=120, silent=True) as child:
            for number in range(len(cases)):
                answer = child.ask(number)
                if answer != "accepts":
                    break
        yield tool, answer.message if isinstance(answer, Finding) else answer
