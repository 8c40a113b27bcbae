"""One check, in this process: a law on a case, on tensors that only it owns."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from traceback import walk_tb
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gradspec._engine._causes import follows, judged, promised_by
from gradspec._engine._flat import flattened
from gradspec._engine._own_error import own_error, own_place, shows_in_a_traceback
from gradspec._engine._plan import Check, misuses
from gradspec._engine._rounding import beyond_rounding
from gradspec._engine._vacuous import with_witness
from gradspec._finding import fault
from gradspec._heartbeat import found
from gradspec._one_line import visible
from gradspec.explain import unseen_by_autograd
from gradspec.law import AnyTrial, Finding, Law, Status, TrialOf, Verdict, raised, shown
from gradspec.laws import (
    SpecFaultError,
    StandInError,
    comparing,
    is_stand_in,
    preserved_process_state,
    quietly,
    witnessing,
)
from gradspec.laws.tensor._primal import returns_no_tensor
from gradspec.laws.tensor.support._replay import INCOMPARABLE, is_incomparable, is_replayed, replayed
from gradspec.laws.tensor.support._sides import fault_of_spec
from gradspec.profile import Profile
from gradspec.spec import Case, FunctionSpec

#: What torch says of any in-place function of a leaf, and what to do: a network calls it on what it has computed.
_LEAF = "a leaf Variable that requires grad"
IN_PLACE = "torch allows to no function: give it a copy in the spec, `function=lambda x: F.apply(x.clone())`"


def run_check(check: Check, profile: Profile, *, seed: int = 0, prior: Mapping[str, Status] | None = None) -> Verdict:
    """Run one law on one case, on tensors that only it owns and with random numbers that only it draws.

    Whatever the function does to the process is undone afterwards; the law `global_state` speaks of it.

    Args:
        check: what to run.
        profile: how hard.
        seed: of all random numbers.
        prior: the statuses of this case under the laws that ran before.
    """
    process = os.getpid()
    try:
        with preserved_process_state(profile.device, seed):
            finding = _find(check, profile, seed, prior or {})
    finally:
        if os.getpid() != process:  # the function has forked, and this one has come back too: it has no say
            os._exit(0)
    return verdict_of(check, finding, profile, seed=seed)


def verdict_of(check: Check, finding: Finding, profile: Profile, *, seed: int) -> Verdict:
    """Return what the law says of the case, waivers considered."""
    return Verdict(
        spec=check.spec.name,
        law=check.law.name,
        case=check.case,
        finding=_waived(check, finding),
        rerun=rerun(check, profile, seed),
    )


def _find(check: Check, profile: Profile, seed: int, prior: Mapping[str, Status]) -> Finding:
    law = check.law

    def new() -> AnyTrial:
        return _trial(check, profile, seed)

    for needed in law.requires:
        if prior.get(needed) is Status.ERROR:
            return Finding(status=Status.NOT_MEASURED, message=f"needs the law {needed}, which ended in an error")
    if law.needs_spec and isinstance(check.spec, FunctionSpec) and is_stand_in(_role(check)):
        return Finding(status=Status.NOT_MEASURED, message="the function itself stands in for what the spec declares")
    try:
        trial = new()
    except (Exception, SystemExit) as error:
        return fault(f"the case could not be made: {shown(error)}")
    of_case = isinstance(trial.spec, FunctionSpec) and law.over == "cases"
    if of_case and (said := _unjudged(trial.case)):
        is_said = Status.ERROR in prior.values()
        return Finding(status=Status.NOT_MEASURED, message=said) if is_said else fault(said)
    if isinstance(trial.spec, FunctionSpec) and is_incomparable(law, trial):  # type: ignore[arg-type]
        return Finding(status=Status.NOT_MEASURED, message=INCOMPARABLE)
    try:
        with witnessing() as seen, comparing() as compared:
            finding = law.check(trial)
            if finding.status is Status.BROKEN:
                found()
                if compared.is_narrow(finding.argument):
                    finding = beyond_rounding(law, finding, lambda k: _reseeded(new(), k))
            finding = with_witness(finding, seen.facts())
    except StandInError as error:
        return Finding(status=Status.NOT_MEASURED, message=str(error))
    except SpecFaultError as error:
        # What computes the right result need not take a transform that nobody promises.
        is_asked = law.capability is None or promised_by(check, law) is not None
        said = str(error)
        unasked = Finding(status=Status.NOT_PROMISED, message=said, details={"raised": said})
        return judged(fault(said) if is_asked else unasked, check, new, prior)
    except KeyboardInterrupt:
        raise  # the user's
    except BaseException as error:
        # What a call raises where its law says that it works is a finding about the function; SystemExit too.
        finding = own_error(error) if own_place(error) and _tells_own(check) else raised(error)
        if _LEAF in str(error) and not _is_of_backward(error):
            finding = Finding(status=Status.ERROR, message=f"forward changes a leaf in place, as {IN_PLACE}")
        instead = quietly(lambda: returns_no_tensor(new())) if of_case else None  # type: ignore[arg-type]  # of a function
        if instead is not None:
            root = next((root for root in check.roots if root.name == "primal"), None)
            finding = instead if root is None else follows(check, root, instead)
    fails = finding.status in (Status.BROKEN, Status.INCONCLUSIVE, Status.ERROR)
    if fails and of_case and (said := fault_of_spec(new()) or _unseen(law, new())):  # type: ignore[arg-type]  # of one
        finding = fault(said)
    return judged(finding, check, new, prior)


def _unseen(law: Law, trial: AnyTrial) -> str:
    """Return why a gradient cannot be held against what a spec declares, if autograd sees no derivative of that."""
    is_held_against = law.name in ("vjp", "surrogate")
    return (is_held_against and quietly(lambda: unseen_by_autograd(trial))) or ""  # type: ignore[arg-type]  # of a function


def _unjudged(case: Case) -> str:
    """Return why no law judges a case: torch compares no numbers of such a tensor; empty if they are judged."""
    for value in tree_leaves((case.args, dict(case.kwargs))):
        if not isinstance(value, torch.Tensor):
            continue
        if value.is_meta:
            return "a tensor of the case is on the device meta, which holds no numbers"
        if value.is_nested:
            return "a tensor of the case is nested: no law judges one, so specify the function on its values"
        if value.dtype is torch.complex32:
            return "a tensor of the case is complex32, in which torch computes too little to compare: use complex64"
    return ""


def _reseeded(trial: AnyTrial, k: int) -> AnyTrial:
    """Return a trial whose law draws other cotangents."""
    return replace(trial, seed=trial.seed + k)


def _tells_own(check: Check) -> bool:
    """Whether an error of our own can be told: under a transform, torch may refuse what a law does with the result."""
    function = getattr(check.spec, "function", None)
    return check.law.family != "transforms" and function is not None and shows_in_a_traceback(function)


def _is_of_backward(error: BaseException) -> bool:
    """Whether a backward pass raised an error, rather than a call of the function."""
    return any(frame.f_code.co_name == "_engine_run_backward" for frame, _ in walk_tb(error.__traceback__))


def _role(check: Check) -> Any:
    """Return what a law that needs a spec compares with: the primal, or else the surrogate."""
    return check.spec.primal if check.law.name == "primal" else check.spec.surrogate  # type: ignore[attr-defined]  # of a FunctionSpec


def _waived(check: Check, finding: Finding) -> Finding:
    """A failure that the spec waives is waived, with the reason; a waiver that nothing needs is an error."""
    waiver = next((w for w in check.spec.waivers if (w.law, w.case) == (check.law.name, check.case)), None)
    if waiver is None:
        return finding
    if finding.status is Status.HOLDS:
        said = f"the law holds, and the spec waives it ({waiver.reason})"
        return fault(said, likely="the waiver is no longer needed: remove it")
    if finding.status in (Status.BROKEN, Status.INCONCLUSIVE):
        details = {**finding.details, "waived": finding.message}
        return replace(finding, status=Status.WAIVED, message=waiver.reason, details=details)
    return finding


def _trial(check: Check, profile: Profile, seed: int) -> AnyTrial:
    spec, make = check.spec, check.maker(seed, profile.device)
    misuse = None
    if check.law.over == "documents":
        case = Case(name=check.case, args=())
    elif check.law.over == "misuses":
        misuse = next(m for m in misuses(spec, make) if m.case.name == check.case)
        case = misuse.case
    else:
        case = next(c for c in spec.cases(make) if c.name == check.case)
    is_of_functions = check.law.judges(FunctionSpec.kind) and isinstance(spec, FunctionSpec)
    may_draw = is_of_functions and check.law.over == "cases" and check.law.family != "randomness"
    is_flattened = check.law.over == "cases" and is_of_functions

    def of(case: Case) -> AnyTrial:
        made: Any = TrialOf(spec=spec, case=case, profile=profile, seed=seed, misuse=misuse)
        made = flattened(made) if is_flattened else made
        return replayed(made) if may_draw and is_replayed(made) else made

    def others() -> Iterator[AnyTrial]:
        cases = list(spec.cases(check.maker(seed, profile.device)))
        place = next((k for k, other in enumerate(cases) if other.name == case.name), len(cases))
        yield from map(of, cases[place + 1 :] + cases[:place])

    return replace(of(case), others=others)


def rerun(check: Check, profile: Profile, seed: int) -> str:
    """Return the command that runs only that check."""
    target = check.path or "TARGET"
    words = ["gradspec", "check", visible(target), "--law", check.law.name, "--case", check.case, "--seed", str(seed)]
    return shlex.join([*words, *profile.options(check.law.scope)])
