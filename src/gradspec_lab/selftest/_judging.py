"""How the subjects of a self-test are judged, each in a task of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from gradspec._engine._child import Child
from gradspec._engine._plan import Maker, checks_of, with_required
from gradspec._engine._session import Session
from gradspec._engine._vacuous import settled
from gradspec.law import Finding, Law, Status, Verdict
from gradspec.profile import Profile
from gradspec.spec import FunctionSpec, Spec
from gradspec_lab.selftest._mutants import Mutant, MutantResult, judge_mutant
from gradspec_lab.selftest._record import Subject
from gradspec_lab.selftest._stock import TOOLS, cases_for, judge

#: One subject that is still to be judged.
Task = Callable[[], Subject]
#: How much is kept of what a checker of torch raised.
WIDTH = 60
#: The laws that measure nothing without a CUDA device.
NEEDS_CUDA = ("parity", "cuda_graph")


@dataclass(frozen=True)
class _Run:
    """How subjects are judged in a run."""

    laws: Sequence[Law]
    makers: Callable[[str], Maker]
    profile: Profile
    seed: int
    stock: bool

    def mutant(self, mutant: Mutant) -> Task:
        """Return the task of judging a mutant."""

        def judged() -> Subject:
            return subject_of(mutant, judge_mutant(mutant, self.laws, self.profile, self.makers, seed=self.seed))

        return judged

    def specimen(self, spec: Spec, sort: str, words: Mapping[str, str]) -> Task:
        """Return the task of judging a specimen.

        Args:
            spec: the specimen.
            sort: "honest" or "diseased".
            words: the laws that must notice it, and what each must say, as a pattern.
        """

        def judged() -> Subject:
            whole = sort == "honest"
            heard = self._heard(spec, words, whole=whole)
            killers = {law for law, verdicts in heard.items() if any(v.status.is_failure for v in verdicts)}
            asked = self.stock and isinstance(spec, FunctionSpec)
            return Subject(
                sort=sort,
                name=spec.name,
                group=spec.kind,
                killed_by=tuple(law.name for law in self.laws if law.name in killers),
                own=tuple(words),
                other_words={law: said for law in words if (said := other_words(heard.get(law, ()), words[law]))},
                not_measured=() if torch.cuda.is_available() else tuple(law for law in words if law in NEEDS_CUDA),
                stock=dict(_stock(spec, self.seed)) if asked else {},  # type: ignore[arg-type]
            )

        return judged

    def _heard(self, spec: Spec, own: Collection[str], *, whole: bool) -> dict[str, list[Verdict]]:
        """Return what each law says of a specimen: its own on every case, a cheap one on the first; or all on all."""
        needed = {law.name for law in with_required([law for law in self.laws if law.name in own], self.laws)}
        laws = [law for law in self.laws if whole or law.cost == "ms" or law.name in needed]
        checks = checks_of([spec], laws, self.profile, self.makers, seed=self.seed)
        first = {check.law.name: check.case for check in reversed(checks)}
        checks = [c for c in checks if whole or c.law.name in needed or c.case == first[c.law.name]]
        with Session(checks, self.profile, seed=self.seed, silent=True) as session:
            found = [session.run(check) for check in checks]
        by_law = sorted(settled(found) if whole else found, key=lambda verdict: verdict.law)
        return {law: list(verdicts) for law, verdicts in groupby(by_law, key=lambda verdict: verdict.law)}


def other_words(verdicts: Sequence[Verdict], pattern: str) -> str:
    """Return what a law says of a diseased specimen where no finding of it matches the pattern; nothing where one does.

    Only one that says `broken` counts: that a law could not be checked says nothing of a disease.
    """
    failed = [
        (v.status, str(v.finding.details.get("found", v.finding.message))) for v in verdicts if v.finding.is_failure
    ]
    if any(status is Status.BROKEN and re.search(pattern, said) for status, said in failed):
        return ""
    return "; ".join(dict.fromkeys(said for _, said in failed))


def subject_of(mutant: Mutant, found: MutantResult) -> Subject:
    """Return what became of a mutant."""
    return Subject(
        sort="mutant",
        name=found.name,
        group=mutant.cls.__name__,
        killed_by=found.killed_by,
        stage=found.stage,
        crash=found.crash,
    )


def brief(said: str) -> str:
    """Return the first words of what a checker raised: a page shows no more than its type."""
    return said if len(said) <= WIDTH else f"{said[:WIDTH]}…"


def _stock(spec: FunctionSpec, seed: int) -> Iterator[tuple[str, str]]:
    """Yield what each of torch's checkers says of a function, in a process that it may kill."""
    for tool in TOOLS:
        cases = cases_for(tool, spec, seed)

        def ask(number: int, tool: str = tool, cases: Sequence[Any] = cases) -> Any:
            return judge(tool, spec, cases[number], seed)

        answer: Any = ""
        with Child(ask, time_limit=120, silent=True) as child:
            for number in range(len(cases)):
                answer = child.ask(number)
                if answer != "accepts":
                    break
        yield tool, brief(answer.message if isinstance(answer, Finding) else answer)
