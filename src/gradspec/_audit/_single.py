"""A function that computes in float32 whatever it is given: what float64 shows of it beyond that is rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._audit._asked import Asked
from gradspec._audit._follows import following
from gradspec._audit._own_dtype import in_dtype
from gradspec._audit._subject import Subject
from gradspec.law import Finding, Rank, Status, Trial, Verdict, broken
from gradspec.laws.tensor.support._bounded import bound_by
from gradspec.laws.tensor.support._call import Inputs, like, outputs, vjp
from gradspec.laws.tensor.support._compare import largest, unseen
from gradspec.laws.tensor.support._differences import is_single
from gradspec.report import Report
from gradspec.spec import Case

SAID = "given float64, the function computes in float32 and returns numbers with the digits of a float32"
LIKELY = "a conversion on the way, as .float(): compute in the dtype of the arguments where that is the wider one"
#: How far apart rounding takes two results of a computation in float32, of their size.
ROUNDING = 1e-4


def in_float32(trials: Iterable[Trial]) -> bool:
    """Whether all calls in float64 compute in float32, and there is one."""
    try:
        said = {_computes_in_float32(trial) for trial in trials}
    except Exception:  # it takes no float32, or has no gradient: what a law finds of it stays as it is
        return False
    return said - {None} == {True}


def _computes_in_float32(trial: Trial) -> bool | None:
    """Say whether a call in float64 gives what it gives for float32; None where that shows nothing.

    A value that is a float32 and does not move, in any bit, with the rounding of the arguments has been computed from
    that. So has a value that is rounded to whole numbers; but the gradients, for a cotangent with all digits of a
    float64, are float32 too. They must be those of the call in float32: a branch for float64 may be wrong.
    """
    given = _each(Inputs.of(trial), with_digits)
    rounded, low = _each(given, _round), _each(given, _low)
    if all(torch.equal(given.values[name], rounded.values[name]) for name in given.wrt):
        return None
    with bound_by(lambda: _values(trial, given))():  # an iteration to a tolerance may have no end in float32
        y, same, near = (_values(trial, inputs) for inputs in (given, rounded, low))
    floating = [t.double() for t in y if t.is_floating_point()]
    if not floating or not all(map(torch.equal, y, same)) or not all(map(is_single, floating)):
        return False
    v = tuple(t / 3 if t.dtype == torch.float64 else t for t in like(y, trial.seed))
    ours = vjp(trial.spec.function, given, v)
    theirs = vjp(trial.spec.function, low, tuple(map(_low, v)))
    both = zip(ours.values(), theirs.values(), strict=True)
    pairs = [(a, b) for a, b in both if a is not None and b is not None and bool(a.any())]
    if not pairs:
        return None
    if not all(is_single(a) for a, _ in pairs):
        return False
    return all(_are_near(a, b) for a, b in (*pairs, *zip(y, near, strict=True)))


def with_float32(report: Report, asked: Asked) -> Report:
    """Return the report of such a function, where what float32 does not show is one finding: that digits are lost.

    Each law that float64 breaks, or on which it cannot tell, is asked again in float32. What is broken there is said in
    the words of float32; what holds there, and is off here by no more than its rounding, follows from the lost digits.
    Of a function that computes in float32 on the way alone, each such finding says so.
    """
    unclear = {v.law for v in report.verdicts if _is_unclear(v)}
    in_float32 = asked.measured.in_float32
    # A reference is a promise in float64.
    laws = [law for law in asked.laws if law.name in unclear and (in_float32 or not law.needs_spec)]
    single = _given_float32(asked.subject, asked.cases) if laws else None
    if single is None or not (in_float32 or _is_partly(asked)):
        return report
    subject, cases = single
    found = asked.again(laws, subject=subject, cases=cases)
    roots: dict[str, str] = {}

    def said(verdict: Verdict) -> Verdict:
        there = found.get((verdict.law, verdict.case))
        if not _is_unclear(verdict) or there is None:
            return verdict
        if there.status is Status.BROKEN and verdict.status is Status.INCONCLUSIVE:
            return replace(verdict, finding=there.finding)
        if there.status is not Status.HOLDS:
            return verdict
        if not in_float32:
            is_said = verdict.finding.rank == Rank.WASTE
            return verdict if is_said else replace(verdict, finding=_rounded(verdict.finding, there.finding))
        root = roots.setdefault(verdict.case, verdict.law)
        return replace(verdict, finding=_lost(verdict.finding, "" if root == verdict.law else root))

    return replace(report, verdicts=tuple(map(said, report.verdicts)))


def as_single(asked: Asked) -> Asked:
    """Return the audit of a function that computes in float32 so that nothing is asked of it in float64."""
    single = _given_float32(asked.subject, asked.cases) if asked.measured.in_float32 else None
    return asked if single is None else replace(asked, subject=single[0], cases=single[1])


def _given_float32(subject: Subject, cases: Sequence[Case]) -> tuple[Subject, tuple[Case, ...]] | None:
    low = in_dtype(cases, torch.float32)
    return None if low is None else (replace(subject, call=_refusing_float64(subject.call)), low)


def _is_partly(asked: Asked) -> bool:
    """Whether experiments show that a function computes in float32 on the way."""

    def shows() -> bool:
        trials = [asked.trial(case) for case in asked.cases]
        return any(map(_is_rough, trials)) and all(map(_is_alike, trials))

    return asked.apart(shows) is True


def _is_alike(trial: Trial) -> bool:
    """Whether a call gives nearly the same in float64 and in float32: a branch for one of them may be wrong."""

    def found(change: Callable[[Any], Any]) -> list[Tensor]:
        inputs = _each(Inputs.of(trial), change)
        y = _values(trial, inputs)
        v = tuple(map(change, like(tuple(t.double() for t in y), trial.seed)))
        return [t for t in (*y, *vjp(trial.spec.function, inputs, v).values()) if t is not None]

    bound = bound_by(lambda: found(lambda value: value))  # an iteration to a tolerance may have no end in float32
    with bound():
        return all(map(_are_near, found(lambda value: value), found(_low)))


def _is_rough(trial: Trial) -> bool:
    """Whether values or gradients in float64 bend by a unit of float32 where the arguments move by a part of it.

    What is computed in float64 bends by the square of that, and what steps by much more.
    """
    inputs = Inputs.of(trial)
    noise = like(inputs.tensors(), trial.seed)

    def moved(sign: int) -> list[Tensor]:
        places = zip(inputs.wrt, noise, strict=True)
        values = {name: inputs.values[name].detach() * (1 + sign * 2**-24 * n / 9) for name, n in places}
        others = Inputs({**inputs.values, **values}, inputs.wrt)
        y = _values(trial, others)
        found = [*y, *vjp(trial.spec.function, others, like(y, trial.seed)).values()]
        return [t.double() for t in found if t is not None and t.is_floating_point()]

    bends = [largest(a - 2 * b + c) / (largest(b) or 1.0) for a, b, c in zip(*map(moved, (-1, 0, 1)), strict=True)]
    return any(2**-30 < bend < 2**-18 for bend in bends)


def _rounded(finding: Finding, there: Finding) -> Finding:
    """Return what is said of a finding in float64 where the law holds in float32, in which something is computed."""
    if finding.status is Status.INCONCLUSIVE:
        return there
    return replace(unseen(finding), likely=LIKELY, reason=None)


def _lost(finding: Finding, root: str) -> Finding:
    if root:
        return following(finding, root)
    details = {**finding.details, "found": finding.message}
    return broken(SAID, likely=LIKELY, rank=Rank.WASTE, details=details)


def _is_unclear(verdict: Verdict) -> bool:
    """Whether a law cannot tell, or is broken by numbers no further apart than float32 rounds."""
    if verdict.status is not Status.BROKEN or verdict.finding.follows:
        return verdict.status is Status.INCONCLUSIVE
    try:
        got, expected = complex(verdict.finding.got), complex(verdict.finding.expected)
    except ValueError:
        return False
    return abs(got - expected) <= ROUNDING * max(abs(got), abs(expected))


def _refusing_float64(call: Any) -> Any:
    """Return a call that takes no float64, so that no law widens what it is given."""

    def refusing(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(t, Tensor) and t.dtype == torch.float64 for t in tree_leaves((args, kwargs))):
            raise TypeError("asked in float32")
        return call(*args, **kwargs)

    return refusing


def _values(trial: Trial, inputs: Inputs) -> tuple[Tensor, ...]:
    return tuple(t.detach() for t in outputs(trial.spec.function(*inputs.args())))


def _each(inputs: Inputs, change: Callable[[Any], Any]) -> Inputs:
    return Inputs({name: change(value) for name, value in inputs.values.items()}, inputs.wrt)


def with_digits(value: Any) -> Any:
    """Return numbers that a float32 holds with digits below its rounding, which a call that was kept does not have."""
    if not isinstance(value, Tensor) or value.dtype != torch.float64 or not torch.equal(value, _round(value)):
        return value
    return torch.where(value == value.round(), value, value * (1 + 2**-28 / 3))


def _low(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.float64 else value


def _round(value: Any) -> Any:
    return value.float().double() if isinstance(value, Tensor) and value.dtype == torch.float64 else value


def _are_near(one: Tensor, other: Tensor) -> bool:
    return largest(one.double() - other.double()) <= ROUNDING * largest(other)
