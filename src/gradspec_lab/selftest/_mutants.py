"""Every mutation of every Function behind the specs, and which laws notice it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradspec._engine._check import run_check
from gradspec._engine._child import Child
from gradspec._engine._plan import Check, Maker, checks_of
from gradspec.law import Finding, Law, Status
from gradspec.profile import Profile
from gradspec.spec import FunctionSpec, Noise
from gradspec_lab.selftest._autograd_functions import autograd_functions
from gradspec_lab.selftest._mutation import Mutation
from gradspec_lab.selftest._mutations import MUTATIONS

#: What a law says of a function that it notices.
_NOTICED = (Status.BROKEN, Status.ERROR)
#: On how many cases a mutant is tried before the laws that compile are, and on how many these are.
FEW = 3
#: What a mutant is held to, in turn, until a stage kills it.
STAGES = (
    f"the laws that compile nothing: on one case, on {FEW}, on all",
    f"the laws that compile: on one case, on {FEW}",
)


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
class MutantResult:
    """What became of a mutant."""

    name: str
    spec: str
    #: The laws that killed it in the first stage in which one did, in the order in which they run; empty: it survived.
    killed_by: tuple[str, ...] = ()
    #: The number of that stage, or of the last one.
    stage: int = 0
    #: What happened to the process, where no law had the time to speak.
    crash: str = ""


def mutants(specs: Sequence[FunctionSpec], mutations: Sequence[Mutation] = MUTATIONS) -> Iterator[Mutant]:
    """Yield each mutation of each Function behind the specs, a shared Function once."""
    seen: set[type] = set()
    for spec in specs:
        for cls in autograd_functions(spec):
            if cls in seen:
                continue
            seen.add(cls)
            for mutation in mutations:
                if _applies(mutation, cls, spec):
                    yield Mutant(spec=spec, cls=cls, mutation=mutation)


def judge_mutant(
    mutant: Mutant,
    laws: Sequence[Law],
    profile: Profile,
    makers: Callable[[str], Maker],
    *,
    seed: int = 0,
    time_limit: float = 600,
) -> MutantResult:
    """Break the Function in a process of its own, hold it to the laws, and return which of them noticed.

    Args:
        mutant: what is broken, and how.
        laws: what it is held to, stage by stage.
        profile: how hard.
        makers: from a kind of spec to what makes what makes its arguments.
        seed: of all random numbers.
        time_limit: how many seconds of CPU time that may take.
    """

    def live(_: None) -> tuple[int, tuple[str, ...]]:
        mutant.mutation.apply(mutant.cls)
        stages = list(_stages(checks_of([_bound_anew(mutant.spec, mutant.cls)], laws, profile, makers, seed=seed)))
        for number in range(len(stages)):
            if killers := _killers(stages[number], profile, seed):
                return number, tuple(law.name for law in laws if law.name in killers)
        return len(stages) - 1, ()

    with Child(live, time_limit=time_limit, silent=True) as child:
        answer = child.ask(None)
    if isinstance(answer, Finding):
        return MutantResult(name=mutant.name, spec=mutant.spec.name, crash=answer.message)
    return MutantResult(name=mutant.name, spec=mutant.spec.name, stage=answer[0], killed_by=answer[1])


def _killers(checks: Sequence[Check], profile: Profile, seed: int) -> set[str]:
    """Return the laws that notice something in one of their checks."""
    found: set[str] = set()
    for check in checks:
        # A law that has noticed something is not asked again.
        if check.law.name not in found and run_check(check, profile, seed=seed).status in _NOTICED:
            found.add(check.law.name)
    return found


def _bound_anew(spec: FunctionSpec, cls: Any) -> FunctionSpec:
    """Return the spec about the class as it is now: a bound `apply` is that of the class as it was."""

    def anew(function: Callable[..., Any]) -> Any:
        owner: Any = getattr(function, "__self__", None)
        return cls.apply if owner is cls else function

    noise = replace(spec.noise, drawing=anew(spec.noise.drawing)) if isinstance(spec.noise, Noise) else spec.noise
    return replace(spec, function=anew(spec.function), noise=noise)


def warm_up(
    spec: FunctionSpec, laws: Sequence[Law], profile: Profile, makers: Callable[[str], Maker], *, seed: int = 0
) -> None:
    """Run the first checks of a sound function here, so that no child has to start torch's machinery again."""
    for check in next(_stages(checks_of([spec], laws, profile, makers, seed=seed))):
        run_check(check, profile, seed=seed)


def _stages(checks: Sequence[Check]) -> Iterator[list[Check]]:
    """Yield the checks in the order of their price: one case, a few, all of them; then the laws that compile."""
    cases = list(dict.fromkeys(check.case for check in checks if check.law.over == "cases"))
    left = [c for c in checks if c.law.cost == "ms" or (c.law.cost == "compile" and c.case in cases[:FEW])]
    tests: tuple[Callable[[Check], bool], ...] = (
        lambda c: c.law.cost == "ms" and c.case in cases[:1],
        lambda c: c.law.cost == "ms" and (c.law.over != "cases" or c.case in cases[:FEW]),
        lambda c: c.law.cost == "ms",
        lambda c: c.case in cases[:1],
        lambda c: True,
    )
    for test in tests:
        yield [c for c in left if test(c)]
        left = [c for c in left if not test(c)]


def _applies(mutation: Mutation, cls: Any, spec: FunctionSpec) -> bool:
    if (mutation.several and len(spec.wrt) < 2) or cls.__name__ in mutation.spares:
        return False
    if mutation.method == "class":
        return mutation.can(cls)
    return mutation.method in vars(cls) and not (mutation.method == "backward" and _has_no_gradient(cls))


def _has_no_gradient(cls: Any) -> bool:
    """Whether a backward returns None for every argument: there is no gradient to break, and nobody calls it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls.backward)))
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    parts = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return all(isinstance(part, ast.Constant) and part.value is None for part in parts)
