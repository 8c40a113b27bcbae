"""The audit of a function that was seen, on the calls that were kept, for what the program uses."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradspec._audit._audit import audit
from gradspec._audit._found import calls_that_show, with_remarks
from gradspec._audit._in_place import REFUSED
from gradspec._audit._lost import asked_of_a_program
from gradspec._audit._own_dtype import backward_error, in_dtype, plain_error
from gradspec._audit._single import with_digits
from gradspec._audit._subject import subject_of
from gradspec._finding import UNASKED
from gradspec._held import unmoved
from gradspec._registry._laws import select_laws
from gradspec._scope import Scope
from gradspec._watch._importing import importable
from gradspec._watch._kept import Kept, few_rows, mapped, tensors_in
from gradspec._watch._row import scopes_of
from gradspec._watch._seen import Seen
from gradspec._watch._store import answered
from gradspec._watch._uses import Use
from gradspec.law import HOLDS, Rank, Status, Verdict, broken
from gradspec.laws.tensor.support._wide_memory import HALF
from gradspec.profile import load_profile
from gradspec.render._remarks import remarks_of
from gradspec.report import Report
from gradspec.spec import Case, Supports

#: How a case is named that is a call of the program in float64.
_WIDE = " in float64"
#: How many calls are audited, the first of each kind first.
CALLS = 3
#: The numbers of a call above which the laws are tried on a few rows of the batch.
MANY = 2_000
#: The numbers up to which the gradient of the whole call is compared with the derivative, after that of a few rows.
WHOLE = 200_000
#: The numbers above which it is not audited: each law calls it many times.
TOO_MANY = 4_000_000


class NotAuditedError(Exception):
    """Why a function was not audited, for the report."""


def audited(seen: Seen, *, seed: int = 0, path: str = "", folder: Path | None = None) -> Report:
    """Audit a function on its kept calls.

    Args:
        seen: the function.
        seed: of all random numbers.
        path: its import path, where it is not that of its class.
        folder: where the calls that are audited are written, so that a command repeats each check.

    Raises:
        NotAuditedError: there is no call of it that works.
    """
    with unmoved((call.args, call.kwargs) for call in seen.calls):
        cases, whole, said = _cases(seen)
    scopes = seen.scopes or scopes_of(seen.uses)
    compiled = {Scope.COMPILE, Scope.EXPORT} & set(scopes)
    laws = tuple(law for law in select_laws(()) if law.cost != "compile" or law.scope in compiled)
    profile = replace(load_profile("quick", scopes=scopes), laws=())
    how: Any = {"name": seen.key, "path": path or importable(seen), "laws": laws, "profile": profile, "seed": seed}
    how["supports"] = Supports.eager(autocast=True if Use.AUTOCAST in seen.uses else None)
    try:
        report = audit(seen.target, cases, **how).report
        if whole and {verdict.status for verdict in report.of(law="surrogate")} == {Status.HOLDS}:
            rest = audit(seen.target, whole, **how | {"laws": ("surrogate",)}).report
            report = replace(report, verdicts=(*report.verdicts, *rest.verdicts))
        if seen.unused and any(verdict.law == "surrogate" for verdict in report.violations):
            rest = audit(_without(seen.target, seen.unused), cases, **how | {"laws": ("surrogate",)}).report
            report = _beside_unused(report, rest, seen.unused)
        report = _as_used(report, seen)
    except (TypeError, ValueError) as error:
        raise NotAuditedError(" ".join(str(error).split())) from None
    report = with_remarks(asked_of_a_program(report), seen.key, (*remarks_of(report, seen.key), *said))
    sheet = {**report.sheets[seen.key], "under_test": seen.where.partition(", ")[0]}
    report = replace(report, sheets={**report.sheets, seen.key: sheet})
    files = {} if folder is None else _files(seen, [*cases, *whole], folder)
    verdicts = [replace(verdict, rerun=_again(seen.key, verdict, files, seed)) for verdict in report.verdicts]
    return replace(report, verdicts=tuple(verdicts))


def _without(target: Any, outputs: tuple[int, ...]) -> Callable[..., Any]:
    """Return a function without the gradients of some of its outputs."""
    call = getattr(target, "apply", target)

    def used(*args: Any, **kwargs: Any) -> Any:
        y = call(*args, **kwargs)
        return type(y)(t.detach() if k in outputs and isinstance(t, Tensor) else t for k, t in enumerate(y))

    return used


def _beside_unused(report: Report, used: Report, outputs: tuple[int, ...]) -> Report:
    """Return a report in which a gradient that is right but for outputs that get none in the program is waste."""
    right = {verdict.case for verdict in used.of(law="surrogate") if verdict.status is Status.HOLDS}
    named = f"output{'s' * (len(outputs) > 1)} {' and '.join(map(str, outputs))}"
    found = broken(
        f"backward is right but for the cotangent of {named}, for which the program never had one",
        likely="mark it as not differentiable: a later loss on it would lose its gradient",
        rank=Rank.WASTE,
    )
    verdicts = (
        replace(v, finding=found) if v.law == "surrogate" and v.finding.rank == Rank.WRONG and v.case in right else v
        for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))


def _as_used(report: Report, seen: Seen) -> Report:
    """Return a report without what is waste in other programs.

    A result as exact as a float32 is none where the program asks for no more, and a gradient is none that it asks for.
    """

    def is_used(verdict: Verdict) -> bool:
        finding = verdict.finding
        if finding.rank != Rank.WASTE:
            return False
        place = finding.details.get(UNASKED)
        given = [call.args[place] for call in seen.calls if place is not None and place < len(call.args)]
        is_asked = bool(given) and all(isinstance(t, Tensor) and t.requires_grad for t in given)
        return is_asked or (verdict.law == "surrogate" and _is_wide(verdict.case))

    return replace(report, verdicts=tuple(replace(v, finding=HOLDS) if is_used(v) else v for v in report.verdicts))


def audit_into(place: Path, seen: Seen, *, seed: int = 0, path: str = "") -> None:
    """Audit a function, and write to its folder what was found, or why it was not audited."""
    try:
        answered(place, audited(seen, seed=seed, path=path, folder=place))
    except NotAuditedError as why:
        answered(place, why=str(why))


def _files(seen: Seen, cases: list[Case], folder: Path) -> dict[str, Path]:
    """Write the calls that are audited; return the file of each that can be written, by the name of its case."""
    from gradspec._audit._saved_call import CallError, save_call

    files = {}
    for number, case in enumerate(cases, 1):
        with contextlib.suppress(CallError):
            file = folder / f"case-{number}.safetensors"
            save_call(file, case.args, case.kwargs, of=seen.key)
            files[case.name] = file
    return files


def _again(key: str, verdict: Verdict, files: Mapping[str, Path], seed: int) -> str:
    """Return the command that runs one check again; empty if no file has its call, or no name leads to the class."""
    if verdict.case not in files or "<locals>" in key:
        return ""
    calls = [word for call in calls_that_show(verdict, files) for word in ("--case", f"@{files[call]}")]
    return shlex.join(["gradspec", "audit", key, *calls, "--law", verdict.law, "--seed", str(seed)])


def _cases(seen: Seen) -> tuple[list[Case], list[Case], list[str]]:
    """Return the calls to audit: each on a few rows and in float64, where the function takes them so; the first as is.

    With them are those of which these are only a few rows, whole, and what is to say: that a backward pass raises in
    float64, and does not in the dtype of the program.

    Raises:
        NotAuditedError: no call was kept, or none works.
    """
    if not seen.calls:
        raise NotAuditedError(seen.not_kept or "no call of its forward was seen")
    found: list[Case] = []
    whole: list[Case] = []
    whys: dict[str, None] = {}
    said: list[str] = []
    training = [call for call in seen.calls if call.trains] or seen.calls
    for call in _defined(seen, training)[:CALLS]:
        given = Case(name=call.text, args=call.args, kwargs=dict(call.kwargs))
        small = _small(given)
        wide = [replace(one, name=f"{one.name}{_WIDE}") for one in in_dtype((small,), torch.float64) or ()]
        if wide and (raised := _only_there(seen, wide[0], small)):
            said.append(f"In float64 the backward pass raises {raised}: the call is audited as the program makes it.")
            wide = []
        before, is_wide = len(found), False
        for choice in (wide, [small, given]):
            refusals = {one.name: _refusal(seen, one) or _narrowing(seen, one) or _raising(seen, one) for one in choice}
            whys |= dict.fromkeys(filter(None, refusals.values()))
            found += [_named(case, found) for case in choice if not refusals[case.name]][:1]
            if len(found) > before:
                is_wide = is_wide or choice is wide
            if len(found) > max(before, 1):
                break
        if small is not given and len(found) > before and _numbers_of(given) <= WHOLE:
            alike = in_dtype((given,), torch.float64) if is_wide else None
            alike = tuple(replace(one, name=f"{one.name}{_WIDE}") for one in alike) if alike else (given,)
            # What a half type adds up goes astray in many rows.
            is_half = any(t.dtype in HALF for t in tensors_in((given.args, dict(given.kwargs))))
            alike += (given,) if is_half and given not in alike else ()
            whole += [_named(one, whole) for one in alike if not _refusal(seen, one)]
    if not found:
        raise NotAuditedError(list(whys)[-1])  # of the call as it was, and not in float64
    return found, whole, said


def _defined(seen: Seen, calls: list[Kept]) -> list[Kept]:
    """Return some calls; of those that differ in what their numbers were drawn of, the first with finite results."""
    drawn: dict[str, Kept] = {}
    for call in calls if any(call.is_drawn for call in calls) else ():
        case = Case(name=call.text, args=call.args, kwargs=dict(call.kwargs))
        if not _refusal(seen, case) and all(bool(t.isfinite().all()) for t in _results(seen, case)):
            drawn.setdefault(call.text, call)
    return [*drawn.values()] or calls


def _only_there(seen: Seen, wide: Case, given: Case) -> str:
    """Return what the backward pass of a call raises in float64, if that of the same call as it was raises nothing."""
    if _refusal(seen, wide):
        return ""
    raised = backward_error(*subject_of(seen.target, (wide,), seen.key))
    return raised if raised and not backward_error(*subject_of(seen.target, (given,), seen.key)) else ""


def _refusal(seen: Seen, case: Case) -> str:
    """Return why a call cannot be audited; empty if it can."""
    if _numbers_of(case) > TOO_MANY:
        return f"its tensors are too large: {case.name}"
    try:
        subject, (one,) = subject_of(seen.target, (case,), seen.key)
    except (TypeError, ValueError) as error:
        return " ".join(str(error).split())
    raised = plain_error(subject, (one,))
    return f"a call of the program, made again, raises {raised}" if raised else ""


def _raising(seen: Seen, case: Case) -> str:
    """Return why a call shows no gradient: its backward pass raises, which a call in evaluation may never run."""
    raised = backward_error(*subject_of(seen.target, (case,), seen.key))
    if not raised or REFUSED in raised:  # what writes in place is audited on copies
        return ""
    return f"its backward pass raises {raised}, which it did not in the program, or which ended that"


def _narrowing(seen: Seen, case: Case) -> str:
    """Return why float64 shows nothing of a call: the function computes in float32 whatever it is given.

    What it returns then has the digits of a float32, and does not move in any bit with digits of the arguments below
    these. A step or a rounding does neither, but has few values.
    """
    if case.args == () or in_dtype((case,), torch.float64) is not None:
        return ""
    results = []
    for change in (with_digits, _as_given):
        args, kwargs = mapped((case.args, dict(case.kwargs)), change)
        results.append([t.double() for t in _results(seen, replace(case, args=args, kwargs=kwargs))])
    is_single = bool(results[0]) and all(
        torch.equal(y, x) and torch.equal(y, y.float().to(y.dtype)) and y.unique().numel() * 2 > y.numel()
        for y, x in zip(*results, strict=True)
    )
    return f"it computes in float32: {case.name}" if is_single else ""


def _results(seen: Seen, case: Case) -> list[Tensor]:
    """Return the floating-point results of a call."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        made = subject_of(seen.target, (case,), seen.key)[0].call(*case.args, **case.kwargs)
    return [t for t in tensors_in(made) if t.is_floating_point()]


def _as_given(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _is_wide(case: str) -> bool:
    return case.partition(" #")[0].endswith(_WIDE)


def _named(case: Case, others: list[Case]) -> Case:
    """Return a case with a name that no other has."""
    same = sum(other.name.partition(" #")[0] == case.name for other in others)
    return replace(case, name=f"{case.name} #{same + 1}") if same else case


def _small(case: Case) -> Case:
    """Return a call with a few rows of its batch, if it has many numbers."""
    call = (case.args, dict(case.kwargs))
    if _numbers_of(case) <= MANY or (small := few_rows(call)) is call:
        return case
    args, kwargs = small
    return replace(case, args=args, kwargs=kwargs, name=f"{case.name}, a few rows")


def _numbers_of(case: Case) -> int:
    return sum(map(Tensor.numel, tensors_in((case.args, dict(case.kwargs)))))
