"""How a backward is wrong where only forward says what it should be: for which arguments, by which factor, and when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from gradspec._one_line import listed
from gradspec.explain._factor import what_it_is
from gradspec.explain._linearity import ADDS, CLIPPED, NOT_LINEAR, SMALL, adds, ignores
from gradspec.explain._other_calls import without_empty_groups, without_negative_indices
from gradspec.explain._repeated import ASSIGNED, SHARED, last_of_each, masked_rows
from gradspec.explain._wrong import MENDED
from gradspec.law import Finding, Law, Reason, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._guess import EXACT, made_of, narrow_type_of
from gradspec.laws.tensor.support._jumps import known_not_to_jump
from gradspec.laws.tensor.support._made_up import can_be_made

IGNORED = "the same for every cotangent: backward ignores the one that it is handed"
_SIGNS = ("positive", "negative")
#: Nearer to 1 than this no factor is forgotten.
_NEAR = 1e-4
#: In how many orders of its numbers an argument of one sign is tried.
_ORDERS = 4
#: How many random directions say that a gradient is off by one factor.
_DIRECTIONS = 3


def why_not_derivative(law: Law, trial: Trial, numbers: Finding | None = None) -> Reason | None:
    """Return how a backward is wrong that is not the derivative of forward; None where no other call shows it.

    Args:
        law: compares the two along a direction.
        trial: the call.
        numbers: how the gradients differ from the differences of forward, with the cause where a test shows one.
    """
    with known_not_to_jump():  # which the law has asked before it found anything
        return _why(law, trial, numbers)


def _why(law: Law, trial: Trial, numbers: Finding | None) -> Reason | None:
    # A divisor that counts the padding is such a factor.
    is_factor = numbers is not None and numbers.reason is not None and numbers.reason.kind in ("factor", "own factor")
    inputs = Inputs.of(trial)
    calls = chain(without_negative_indices(inputs), without_empty_groups(inputs))
    for reason, others in () if is_factor else calls:
        if holds_twice(law, replace(trial, case=replace(trial.case, args=others.args(), kwargs={}))):
            return reason
    distinct = None if is_factor else _with_distinct_indices(trial)
    if distinct is not None and holds_twice(law, distinct):
        shown = holds_twice(law, _of_one_element_an_index(trial))
        return Reason(kind="repeated index", words=f"right where no index repeats: {ASSIGNED if shown else SHARED}")
    if same := ignores(trial):
        which = "" if len(same) == len(trial.spec.wrt) else f"the gradient of {listed(same)} is "
        return Reason(kind="ignored cotangent", words=f"{which}{IGNORED}", evidence={"arguments": same})
    if numbers is not None and numbers.reason is not None and numbers.reason.kind in NOT_LINEAR:
        return numbers.reason
    added, is_left = adds(trial)
    is_mended = numbers is not None and numbers.reason is not None and numbers.reason.kind == "repair"
    if added and (is_left or not is_mended):
        return Reason(kind="offset", words=ADDS, evidence={"argument": added[0]})
    # No clip makes zeros, with which what is small agrees.
    given = vjp(trial.spec.surrogate, inputs, seed=trial.seed).values()
    is_there = all(g is None or bool(g.any()) for g in given)
    if is_there and holds_twice(law, _with_small_cotangents(trial)):
        return Reason(kind="clipped", words=CLIPPED)
    # A backward may refuse a call in which an argument is frozen: of that one nothing is known.
    each = {name: quietly(lambda name=name: _of_argument(law, trial, name)) or "" for name in trial.spec.wrt}  # type: ignore[misc]
    words = _of_arguments(law, trial, each, tell_sign=not is_mended)
    # A factor in all directions is said of each argument; of what is wrong in another way the numbers tell more.
    if numbers is not None and numbers.reason is not None:
        tells_more = len(each) > 1 and "wrong" in each.values()
        if not words or tells_more or numbers.reason.kind == "range":
            return numbers.reason
        # That is said once for all arguments, and the line that makes it.
        words += f"; {mended}" if (mended := numbers.reason.evidence.get(MENDED)) else ""
    short = [name for name, how in each.items() if how.endswith(EXACT)]
    evidence = {"arguments": {name: how for name, how in each.items() if how}} | ({"digits": short} if short else {})
    return Reason(kind="of arguments", words=words, evidence=evidence) if words else None


def _of_arguments(law: Law, trial: Trial, each: Mapping[str, str], *, tell_sign: bool) -> str:
    """Return how the gradients of the arguments are wrong, each by itself, in a sentence."""
    groups: dict[str, list[str]] = {}
    for name, how in each.items():
        groups.setdefault(how, []).append(name)
    right, unclear = groups.pop("right", []), groups.pop("", [])
    if len(groups) == 1 and not right and not unclear and "zero" not in groups:
        (how,) = groups
        return how.removeprefix("wrong: ") if how != "wrong" else _by_sign(law, trial) if tell_sign else ""
    parts = [f"the gradient of {listed(names)} is {how}" for how, names in groups.items()]
    return ", ".join(parts) + (f", and right for {listed(right)}" if right else "") if parts else ""


def _by_sign(law: Law, trial: Trial) -> str:
    """Say whether the gradient is wrong only where the one argument is negative, or positive; empty if not."""
    if len(trial.spec.wrt) > 1:
        return ""
    (name,) = trial.spec.wrt
    place = list(signature(trial.spec.primal).parameters).index(name)
    found: list[str] = []
    for sign in (1, -1):
        try:
            # In another order, too: which number is the largest, or the last, may be what counts.
            every = {_of_argument(law, _of_one_sign(trial, place, sign, draw), name) for draw in range(_ORDERS)}
        except Exception:
            return ""  # a logarithm takes one of them only
        if len(every) > 1:
            return ""
        found += every
    for (one, other), (where, elsewhere) in ((found, _SIGNS), (found[::-1], _SIGNS[::-1])):
        if one == "right" and other not in ("right", ""):
            return f"right where `{name}` is {where}, {other} where it is {elsewhere}"
    return ""


def _of_one_sign(trial: Trial, place: int, sign: int, draw: int) -> Trial:
    """Return the call with the numbers of an argument all of one sign, and in another order but for the first draw."""
    x = trial.case.args[place].abs() * sign
    shuffled = torch.randperm(x.numel(), generator=torch.Generator().manual_seed(draw))
    order = shuffled if draw else torch.arange(x.numel())
    args = [x.flatten()[order.to(x.device)].view_as(x) if k == place else a for k, a in enumerate(trial.case.args)]
    return replace(trial, case=replace(trial.case, args=tuple(args)))


def _with_small_cotangents(trial: Trial) -> Trial:
    """Return the call of the function times a small number, whose backward hands on small cotangents."""

    @wraps(trial.spec.surrogate)
    def scaled(*args: Any) -> Any:
        y = tuple(SMALL * t if differentiable(t) else t for t in outputs(trial.spec.surrogate(*args)))
        return y if len(y) > 1 else y[0]

    return replace(trial, spec=replace(trial.spec, surrogate=scaled, gradient=None))


def _of_argument(law: Law, trial: Trial, name: str) -> str:
    """Return how the gradient of one argument is wrong, "off by the factor 0.5"; "right"; empty if unclear."""
    alone = replace(trial, spec=replace(trial.spec, wrt=(name,), zero_gradient=()))
    found = [law.check(replace(alone, seed=alone.seed + 10 * k)) for k in range(_DIRECTIONS)]
    if all(finding.status is Status.HOLDS for finding in found):
        return "right"
    if any(finding.status is not Status.BROKEN for finding in found):
        return ""
    pairs = [(float(finding.got), float(finding.expected.split()[0])) for finding in found]
    if not all(expected for _, expected in pairs):
        return "wrong"
    first, *rest = (got / expected for got, expected in pairs)
    if (off := max(abs(ratio - 1) for ratio in (first, *rest))) < _NEAR:
        return f"off by {off:.1g} of itself, {EXACT}"
    if (narrow := _narrow_type(trial, name)) and off < _MOST * torch.finfo(getattr(torch, narrow)).eps:
        return f"wrong: {made_of(narrow)}"
    digits = 1e-3 if any(t.dtype != torch.float64 for t in _tensors(trial) if t.is_floating_point()) else 1e-6
    if any(abs(ratio - first) > digits * max(abs(first), digits) for ratio in rest):
        return "wrong"
    if abs(first) < digits:
        return "zero"
    if abs(first + 1) < digits:
        return "of the wrong sign"
    of = what_it_is(first, Inputs.of(alone), partial(_is_off_by, law, alone, digits), digits=digits)
    if not of and _refutes(law, alone, digits, first):
        return "wrong"
    return f"off by the factor {first:.4g}" + (f", which is {of}" if of else "")


def _refutes(law: Law, trial: Trial, digits: float, factor: float) -> bool:
    """Whether the derivative of one number by one number is off by another factor, or by none, elsewhere."""
    inputs = Inputs.of(trial)
    numbers = (*(inputs.values[name] for name in inputs.wrt), *outputs(trial.spec.surrogate(*inputs.args())))
    if any(t.numel() > 1 for t in numbers if isinstance(t, Tensor) and differentiable(t)):
        return False  # a factor in several directions is one
    moved = inputs.redrawn(trial.seed + 1)
    if not can_be_made(trial.spec.function, moved):
        return False
    finding = law.check(replace(trial, case=replace(trial.case, args=moved.args(), kwargs={})))
    if finding.status is not Status.BROKEN:  # in other numbers it may have no derivative
        return finding.status is Status.HOLDS
    return not math.isclose(float(finding.got) / float(finding.expected.split()[0]), factor, rel_tol=digits)


def _is_off_by(law: Law, trial: Trial, digits: float, inputs: Inputs, factor: float) -> bool:
    """Whether a derivative is off by a factor for other arguments."""
    if not can_be_made(trial.spec.function, inputs):
        return False
    finding = law.check(replace(trial, case=replace(trial.case, args=inputs.args(), kwargs={})))
    ratio = float(finding.got) / float(finding.expected.split()[0]) if finding.status is Status.BROKEN else 1.0
    return math.isclose(ratio, factor, rel_tol=digits)


#: How many units of rounding of a narrow type its sums may be off; what is farther off is wrong in another way.
_MOST = 2**12


def _narrow_type(trial: Trial, name: str) -> str:
    """Return the narrow type whose numbers a gradient is made of, for each of two cotangents; empty if none."""
    inputs = Inputs.of(trial)
    y = outputs(trial.spec.surrogate(*inputs.args()))
    found = set()
    for k in range(2):
        gradient = vjp(trial.spec.surrogate, inputs, like(y, trial.seed + k))[name]
        found.add(None if gradient is None else narrow_type_of(gradient))
    return found.pop() or "" if len(found) == 1 else ""


def _with_distinct_indices(trial: Trial) -> Trial | None:
    """Return the call with integers that do not repeat in place of those that do; None where none do."""
    args = tuple(map(_distinct, trial.case.args))
    changed = any(a is not b for a, b in zip(args, trial.case.args, strict=True))
    return replace(trial, case=replace(trial.case, args=args)) if changed else None


def _of_one_element_an_index(trial: Trial) -> Trial:
    """Return the call of the function with an output that is zero but at the last element of each index."""
    masks = [
        last_of_each(value) for value in trial.case.args if isinstance(value, Tensor) and _distinct(value) is not value
    ]

    @wraps(trial.spec.surrogate)
    def masked(*args: Any) -> Any:
        y = tuple(masked_rows(t, masks) for t in outputs(trial.spec.surrogate(*args)))
        return y if len(y) > 1 else y[0]

    return replace(trial, spec=replace(trial.spec, surrogate=masked, gradient=None))


def _distinct(value: object) -> object:
    if not isinstance(value, Tensor) or value.dtype not in (torch.int64, torch.int32) or value.numel() < 2:
        return value
    if torch.unique(value).numel() == value.numel():
        return value
    return torch.arange(value.numel(), dtype=value.dtype, device=value.device).view(value.shape)


def holds_twice(law: Law, trial: Trial) -> bool:
    """Whether a law holds of a call under two seeds; not if one raises."""
    try:
        return all(law.check(replace(trial, seed=trial.seed + 10 * k)).status is Status.HOLDS for k in range(2))
    except Exception:
        return False  # there is nothing at the places that these integers name


def _tensors(trial: Trial) -> Iterable[Tensor]:
    return (value for value in trial.case.args if isinstance(value, Tensor))
