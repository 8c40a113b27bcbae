"""Every mutation of every Function behind the specs: who kills it, and what torch's own checkers say."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gradspec._isolation import Child
from gradspec._plan import plan
from gradspec._run import run_check
from gradspec.law import Finding, Law, Status
from gradspec.profile import Profile
from gradspec.selftest._mutation import Mutation
from gradspec.selftest._mutations import MUTATIONS
from gradspec.source import import_closure, package_root
from gradspec.spec import FunctionSpec

#: On how many cases a mutant is tried first; on the others, and by laws that compile, if it survives those.
FEW = 3


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One Function, broken in one way."""

    spec: FunctionSpec
    #: The Function that is broken: the spec's own, or one that it calls.
    cls: type
    mutation: Mutation

    @property
    def name(self) -> str:
        """As in a table: "GradFactor.sign_flipped"."""
        return f"{self.cls.__name__}.{self.mutation.name}"


@dataclass(frozen=True, kw_only=True)
class Autopsy:
    """What became of a mutant."""

    name: str
    spec: str
    #: The laws that killed it in the first stage in which one did, in the order in which they run; empty: it survived.
    killed_by: tuple[str, ...]
    #: What happened to the process, where no law had the time to speak.
    crash: str = ""


def mutants(specs: Sequence[FunctionSpec]) -> Iterator[Mutant]:
    """Yield each mutation of each Function behind the specs, a shared Function once."""
    seen: set[type] = set()
    for spec in specs:
        for cls in functions_behind(spec):
            if cls in seen:
                continue
            seen.add(cls)
            for mutation in MUTATIONS:
                if _applies(mutation, cls, spec):
                    yield Mutant(spec=spec, cls=cls, mutation=mutation)


def functions_behind(spec: FunctionSpec) -> list[type]:
    """Return the Function of a spec, and those in the modules that its module stands on."""
    own: Any = spec.implementation
    if own is None:
        return []
    root = package_root(own.__module__.partition(".")[0])
    files = {str((Path(root or ".") / file).resolve()) for file in import_closure(own.__module__)}
    homes = [m for m in list(sys.modules.values()) if str(getattr(m, "__file__", None)) in files]
    found = [
        value
        for home in homes
        for value in vars(home).values()
        if isinstance(value, type) and issubclass(value, torch.autograd.Function) and value.__module__ == home.__name__
    ]
    return list(dict.fromkeys([own, *sorted(found, key=lambda cls: cls.__name__)]))


def autopsy(mutant: Mutant, laws: Sequence[Law], profile: Profile, *, seed: int = 0, seconds: float = 600) -> Autopsy:
    """Break the Function in a process of its own, hold it to the laws, and return which of them noticed."""
    checks = [c for c in plan([mutant.spec], laws, profile, seed=seed) if c.law.cost != "process"]
    cases = list(dict.fromkeys(check.case for check in checks if check.law.over == "cases"))
    few = set(cases[:FEW])
    at_once = [c for c in checks if c.law.cost == "ms" and (c.law.over != "cases" or c.case in few)]
    stages = (at_once, [c for c in checks if c not in at_once and (c.law.cost == "ms" or c.case in few)])

    def live(_: None) -> tuple[str, ...]:
        mutant.mutation.infect(mutant.cls)
        for stage in stages:
            killers: dict[str, None] = {}
            for check in stage:
                if check.law.name not in killers:
                    status = run_check(check, profile, seed=seed).status
                    if status in (Status.BROKEN, Status.ERROR):
                        killers[check.law.name] = None
            if killers:
                return tuple(killers)
        return ()

    with Child(live, seconds=seconds) as child:
        answer = child.ask(None)
    crash = answer.message if isinstance(answer, Finding) else ""
    killers = () if isinstance(answer, Finding) else answer
    return Autopsy(name=mutant.name, spec=mutant.spec.name, killed_by=killers, crash=crash)


def _applies(mutation: Mutation, cls: Any, spec: FunctionSpec) -> bool:
    if mutation.several and len(spec.wrt) < 2:
        return False
    if mutation.method != "class":
        return mutation.method in vars(cls)
    return mutation.can(cls)
