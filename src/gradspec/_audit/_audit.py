"""Judge a function of which nothing is known but a few calls: every law that needs no spec, and a spec to paste.

What the function does in plain eager mode stands in for what it promises. A transform, a layout or a second backward
pass that gives something else is a finding; whether the eager gradient is the one that its author meant is not known.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from gradspec._audit._eager_spec import eager_spec
from gradspec._audit._known_forms import guessed
from gradspec._audit._probe import Measured, floating, measure, signature_of
from gradspec._audit._proposal import proposed
from gradspec._engine._child import Child, available
from gradspec._engine._parallel import Progress
from gradspec._engine._plan import plan
from gradspec._engine._turn import one_at_a_time
from gradspec._engine._verify import run_plan
from gradspec._record import Source, reach_from, root_of
from gradspec.law import Finding, Law
from gradspec.laws import LAWS, preserved_process_state
from gradspec.profile import Profile, load_profile
from gradspec.report import Report
from gradspec.spec import Case, FunctionSpec

Answer = TypeVar("Answer")

#: The laws that judge nothing of a function that draws noise. Of its draws the remark speaks, and the seeding of each
#: call moves a generator that `declared_draws` watches; `rand_like` fills a transposed tensor in the order of memory,
#: so that `layout` would compare one noise with another.
_NOT_NOISE = ("declared_draws", "layout")
#: What makes a spec of a function that has none.
STAND_IN = (
    "gradspec._audit._eager_spec:eager_spec",
    "gradspec._audit._probe:measure",
    "gradspec._audit._audit:_chosen",
)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit found."""

    #: The verdicts of the laws that need no spec.
    report: Report
    #: A spec of the function, as Python text, to be completed and pasted.
    proposal: str
    #: What was measured beside the laws, a sentence each.
    remarks: tuple[str, ...]


@one_at_a_time
def audit(
    function: Callable[..., Any],
    cases: Sequence[Case | tuple[Any, ...]],
    *,
    name: str = "",
    path: str = "",
    laws: Sequence[Law] | None = None,
    profile: Profile | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    known: Report | None = None,
) -> Audit:
    """Hold a function without a spec to every law that needs none.

    Args:
        function: a `torch.autograd.Function` class (its `apply` is called), or anything that is called with tensors.
        cases: representative calls, each a `Case` or a tuple of positional arguments. Floating tensors in float64 show
            most; a gradient is asked for of every floating tensor.
        name: the function's name in the report; its own unless given.
        path: its import path, `package.module:Name`, for the text of the proposal.
        laws: the laws to choose from, ours unless told.
        profile: how hard; `quick` unless told.
        seed: of all random numbers.
        jobs: how many child processes at a time; as many as there are processors, where that pays.
        progress: called before each check, and once at the end.
        known: an earlier report: its verdicts stand where nothing that can change them has changed.

    Returns:
        The report, the proposed spec and the remarks. Whatever the function does is in them, never an exception.

    Raises:
        TypeError: `function` cannot be called.
        ValueError: there is no case, there are two of one name, or one does not fit the function's arguments; or none
            of the laws that are asked for can judge it.

    Example:
        >>> import torch
        >>> from gradspec import audit
        >>> class Sign(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.sign()
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad
        >>> found = audit(Sign, [(torch.tensor([0.5, -2.0], dtype=torch.float64),)])
        >>> "func_grad" in {verdict.law for verdict in found.report.failures}
        True
    """
    call, implementation = _called(function)
    named = tuple(_case(case, number) for number, case in enumerate(cases, 1))
    if not named:
        raise ValueError("an audit needs at least one case: a tuple of arguments, such as (torch.randn(2, 3), 0.5)")
    profile = profile or load_profile("quick")
    name = name or getattr(implementation or function, "__name__", type(function).__name__)
    signature = signature_of(call, implementation, named[0])
    for case in named:
        _refuse_misfit(name, signature, case)
    measured = _apart(lambda: measure(call, signature, named, seed), profile, seed)
    if isinstance(measured, Finding):
        measured = Measured(raised=measured.message)
    unusable = bool(measured.raised) and not measured.wrt
    if unusable:  # a law must ask for a gradient to say so
        measured = replace(measured, wrt=floating(signature, named[0]))
    spec = eager_spec(name, call, implementation, signature, named, measured, seed)
    chosen = _chosen(laws or LAWS, profile, measured, unusable=unusable)
    if not chosen:
        noise = "the function draws noise: audit a core that takes it as an argument"
        raise ValueError(f"no law is left of {', '.join(profile.laws)}: {noise if measured.random else 'needs a spec'}")
    profile = replace(profile, laws=())  # they are chosen
    paths = {name: path} if path else None
    checks = plan([spec], chosen, profile, seed=seed, paths=paths)
    report = run_plan(
        checks,
        [spec],
        chosen,
        profile,
        seed=seed,
        paths=paths,
        jobs=jobs,
        progress=progress,
        known=known,
        given={f"spec {name}": _source(path, spec, named)},
    )
    forms = _apart(lambda: guessed(spec), profile, seed)
    proposal = proposed(spec, report, (None, None) if isinstance(forms, Finding) else forms, path)
    return Audit(report=report, proposal=proposal, remarks=tuple(measured.remarks()))


def _chosen(laws: Sequence[Law], profile: Profile, measured: Measured, *, unusable: bool) -> list[Law]:
    """Return the laws that can judge a function without a spec."""
    if unusable:  # one law says it as well as all
        return [law for law in laws if law.name == "global_state"]
    chosen = [law for law in laws if law.judges("function") and not law.needs_spec]
    chosen = [law for law in chosen if not profile.laws or law.name in profile.laws]
    if measured.random:
        return [
            law for law in chosen if law.cost != "compile" and law.capability is None and law.name not in _NOT_NOISE
        ]
    return chosen


def _source(path: str, spec: FunctionSpec, cases: Sequence[Case]) -> Source:
    """Return what the verdicts stand on: the function, its calls, and what stands in for its spec."""
    roots = root_of(spec.implementation or spec.function, spec.modules, path)
    return Source.of(
        reach_from(), *roots, *STAND_IN, facts=repr([(case.name, case.args, case.kwargs) for case in cases])
    )


def _called(function: Callable[..., Any]) -> tuple[Callable[..., Any], type | None]:
    """Return what is called, and the Function behind it."""
    if isinstance(function, type) and issubclass(function, torch.autograd.Function):
        return function.apply, function
    if not callable(function):
        raise TypeError(f"an audit takes a Function or a callable, got {function!r}")
    owner = getattr(function, "__self__", None)
    is_apply = isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
    return function, owner if is_apply else None


def _case(case: Case | tuple[Any, ...], number: int) -> Case:
    if isinstance(case, Case):
        return case
    return Case(name=f"call {number}", args=case if isinstance(case, tuple) else (case,))


def _refuse_misfit(name: str, signature: inspect.Signature, case: Case) -> None:
    try:
        signature.bind(*case.args, **case.kwargs)
    except TypeError as error:
        raise ValueError(f"the case {case.name!r} does not fit {name}{signature}: {error}") from None


def _apart(run: Callable[[], Answer], profile: Profile, seed: int) -> Answer | Finding:
    """Return what a call of unknown code gives, in a child process: whatever it does there, this one is as before."""

    def alone(_: None) -> Answer:
        with preserved_process_state(profile.device, seed):
            return run()

    if not available(profile.device):
        return alone(None)
    with Child(alone, seconds=profile.seconds) as child:
        return child.ask(None)
