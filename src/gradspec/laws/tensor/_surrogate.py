r"""The surrogate's autograd derivative is its numerical derivative.

Why it matters: all derivative laws compare with the surrogate, so the surrogate itself is compared with
extrapolated central differences, with an error bar.

What breaks it: a spec whose surrogate uses `.data`, rounds, or is itself a custom Function with a wrong backward.

Remedy: write the surrogate in plain differentiable torch. What it stops by `detach()` is a constant of the map: it is
held still while the arguments move.

An argument in `zero_gradient` is held still: the surrogate detaches it. In an audit of a module in training so may be
what forward writes to its buffers.

A symmetric matrix of which forward reads one triangle, as `torch.linalg.eigvalsh` does, moves in symmetric directions.
A case on a kink, as 0 is one of relu, is judged beside it. A case in a lower precision is judged in float64, and in its
own dtype by what the function returns in float64. In a half type its long sums, and what forward saves, are done in
float32 too: what brings a gradient twice as close is lost there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from gradspec._finding import MEANT
from gradspec.law import HOLDS, Finding, Law, Rank, Status, Trial, broken, not_applicable, shown
from gradspec.laws.tensor.support._bound import declared, dtype_of_all
from gradspec.laws.tensor.support._call import Inputs, StandInError, differentiable, like, outputs
from gradspec.laws.tensor.support._compare import unseen
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import (
    Slope,
    in_double,
    inner,
    is_half,
    is_low,
    is_single,
    left_by_rounding,
    lies_within_a_step,
    moves,
    slope,
)
from gradspec.laws.tensor.support._embedding import PlainEmbedding
from gradspec.laws.tensor.support._finite_part import finite_part
from gradspec.laws.tensor.support._kink import TIES, is_kink, judged_beside, lies_on_a_kink, tied
from gradspec.laws.tensor.support._own_dtype import judge_own_dtype
from gradspec.laws.tensor.support._question import question
from gradspec.laws.tensor.support._reference import declared_zero, is_audited, is_stand_in, own_backwards
from gradspec.laws.tensor.support._solver import at_a_tolerance, of_a_solver
from gradspec.laws.tensor.support._surrogate_call import MOVES, along_direction, surrogate_of, value_and_gradients
from gradspec.laws.tensor.support._symmetric import ROUNDED, is_symmetric, kept_symmetric
from gradspec.laws.tensor.support._vanishing import vanishes
from gradspec.spec._gradient import NO_MAP, gradient_of

_MEANT = (
    "if it is, as in a straight-through estimator or a clipped gradient, say what it is: the option `surrogate` or "
    "`gradient` of an audit, a check or a spec"
)
#: How much shorter the steps are within a domain such as that of unit vectors, which is left by a large one.
_SHORT = 1e-5
#: How far float32 may take a derivative whose gradients are numbers of float32, of its size.
_OF_SINGLE = 1e-5
#: How far off, of its size, a derivative is a mistake though its error bar is wide.
_SEEN = 1e-2
_TURNS = "the function turns within the step of the numerical derivative: a shorter one finds another"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if gradient_of(trial.spec.surrogate):
        return not_applicable(NO_MAP)
    if not is_stand_in(trial.spec.surrogate):  # a surrogate detaches what has a gradient of zero on purpose
        inputs = replace(inputs, wrt=tuple(name for name in inputs.wrt if name not in trial.spec.zero_gradient))
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if not is_stand_in(trial.spec.surrogate):
        finding = _judged(trial, inputs)
        # What is compared with a number that `detach()` stops jumps where only one of the two moves, as behind a top-k.
        moves = finding.status is Status.INCONCLUSIVE and _judged(_with_what_is_stopped(trial), inputs) is HOLDS
        if finding.status is Status.BROKEN:
            with PlainEmbedding():
                moves = _judged(trial, inputs) is HOLDS
        return HOLDS if moves else finding
    if not (wrt := tuple(name for name in inputs.wrt if name not in declared_zero(trial.spec))):
        return not_applicable("no gradient is asked about")
    inputs = Inputs(inputs.values, wrt)
    finding = _judged(trial, inputs)
    is_unclear = finding.status in (Status.BROKEN, Status.INCONCLUSIVE)
    return (is_unclear and question(trial, inputs, _judged)) or finding


def _with_what_is_stopped(trial: Trial) -> Trial:
    """Return the call of a surrogate in which what `detach()` stops moves with the arguments."""

    @wraps(trial.spec.surrogate)
    def surrogate(*args: Any, **kwargs: Any) -> Any:
        return trial.spec.surrogate(*args, **kwargs)

    surrogate.__dict__[MOVES] = True
    return replace(trial, spec=replace(trial.spec, surrogate=surrogate))


def _judged(trial: Trial, inputs: Inputs) -> Finding:
    if any(inputs.values[name].numel() == 0 for name in inputs.wrt):
        return not_applicable("a zero-size input has no direction to move in")
    wide = in_double(inputs)
    try:
        trial = finite_part(trial, wide)
        finding = _twice(trial, wide)
        is_rough = finding.status is Status.INCONCLUSIVE and is_low(inputs) and not lies_on_a_kink(finding)
        is_narrow = is_half(inputs) or dtype_of_all(surrogate_of(trial, wide)(*wide.tensors())) == torch.float32
        if is_rough or (finding is HOLDS and is_narrow):
            alone = _each_alone(trial, wide)
            finding = alone if alone.status is Status.BROKEN else finding
    except StandInError:  # an audit of a function that takes its own dtype only
        return _in_single(trial, inputs)
    except Exception:
        if not is_stand_in(trial.spec.surrogate) or not is_low(inputs):
            raise
        return _in_single(trial, inputs)  # so does its backward: it runs a module in that dtype
    if not is_low(inputs) or (finding.status is Status.BROKEN and finding.rank is not Rank.WASTE):
        return finding
    if not is_stand_in(trial.spec.surrogate):
        # What is declared is asked for in float64, whatever the dtype of the case; the function has that of the case.
        lost = of_function(trial, inputs) if is_half(inputs) and is_audited(trial.spec) else HOLDS
        return lost if lost.status is Status.BROKEN and lost.reason is not None else finding
    # What is off by as little as float32 rounds is no waste where nothing wider was given.
    return _in_its_own_dtype(trial, inputs, HOLDS if finding.status is Status.BROKEN else finding)


def _in_its_own_dtype(trial: Trial, inputs: Inputs, in_double: Finding) -> Finding:
    """Return what is said of a case that is not in float64, where nothing is broken there."""
    if in_double.status is Status.INCONCLUSIVE and not lies_on_a_kink(in_double):
        own = _twice(trial, inputs)  # it computes in float32 inside: small steps show only its rounding
        if own.status is Status.INCONCLUSIVE:
            return in_double
        lost = _held_to_double(trial, inputs)
        return lost if own.status is Status.HOLDS and lost.status is Status.BROKEN else own
    own = _held_to_double(trial, inputs)
    if own.status is Status.INCONCLUSIVE:
        by_differences = _twice(trial, inputs)
        own = Finding(status=Status.NOT_MEASURED, message=f"in float64 the law holds; {own.message}")
        return own if by_differences.status is Status.INCONCLUSIVE else by_differences
    return own if own.status is Status.BROKEN else in_double


def of_function(trial: Trial, inputs: Inputs) -> Finding:
    """Hold the function of a spec, in place of its surrogate, to the same function in float64."""

    @wraps(trial.spec.primal)
    def itself(*args: Any) -> Any:
        return trial.spec.function(*args)

    return _held_to_double(replace(trial, spec=replace(trial.spec, surrogate=itself, gradient=None)), inputs)


def _held_to_double(trial: Trial, inputs: Inputs) -> Finding:
    """Hold the call to the same function in float64: broken needs two failures, or an experiment that shows why."""
    own = HOLDS
    for attempt in range(2):
        before = own
        own = judge_own_dtype(inputs, lambda values, v: value_and_gradients(trial, values, v), trial.seed + attempt)
        is_shown = own.reason is not None and own.reason.kind in ("accumulated", "rounded at")
        if own.status is Status.INCONCLUSIVE or is_shown or (own is HOLDS and not is_half(inputs)):
            return own
    return own if before.status is Status.BROKEN else before


def _in_single(trial: Trial, inputs: Inputs) -> Finding:
    """Return what is said of a case without float64: in float32 a direction shows each argument by itself only.

    Along its own gradient an argument moves the value as far as it can: what rounds there is a thousandth of it.
    """
    finding = _twice(trial, inputs)
    if finding.status is not Status.HOLDS or any(t.dtype.to_real() != torch.float32 for t in inputs.tensors()):
        return finding
    return _each_alone(trial, inputs)


def _each_alone(trial: Trial, inputs: Inputs) -> Finding:
    for number in range(len(inputs.wrt)):
        for attempt in range(2):
            finding = _along_its_gradient(trial, inputs, number, trial.seed + attempt)
            if finding.status is Status.HOLDS:
                break
        else:
            return finding
    return HOLDS


def _along_its_gradient(trial: Trial, inputs: Inputs, number: int, seed: int) -> Finding:
    x = inputs.tensors()
    v = like(tuple(t.detach() for t in surrogate_of(trial, inputs)(*x)), seed + 1)
    gradient = value_and_gradients(trial, inputs, v)[1][number]
    if gradient is None or not 0 < float(gradient.norm()) < math.inf:
        return HOLDS  # as far as all arguments together have shown
    u = [torch.zeros_like(t) for t in x]
    u[number] = (gradient / gradient.norm() * math.sqrt(gradient.numel()) / 9).to(x[number].dtype)
    return _in_direction(trial, inputs, tuple(u), seed, is_beside=False, is_alone=True)


def _twice(trial: Trial, inputs: Inputs) -> Finding:
    findings = []
    for attempt in range(2):  # broken needs two failures, in fresh directions
        finding = _one_direction(trial, inputs, trial.seed + attempt)
        # Where x is small the surrogate may turn within a step. In proportion, no zero moves: many a kink is at one.
        if finding.status is Status.INCONCLUSIVE and not lies_on_a_kink(finding):
            in_proportion = _one_direction(trial, inputs, trial.seed + attempt, in_proportion=True)
            finding = finding if in_proportion.status is Status.INCONCLUSIVE else in_proportion
        # Where it is smaller than a step of a low precision, a derivative is that of another place.
        if finding.status is Status.BROKEN and lies_within_a_step(inputs):
            in_proportion = _one_direction(trial, inputs, trial.seed + attempt, in_proportion=True)
            finding = finding if in_proportion.status is Status.BROKEN else in_proportion
        findings.append(finding)
        if findings[-1].status is not Status.BROKEN:
            return findings[-1]
    return findings[0]


def _one_direction(
    trial: Trial,
    inputs: Inputs,
    seed: int,
    *,
    in_proportion: bool = False,
    is_beside: bool = False,
    explains: bool = True,
) -> Finding:
    x = inputs.tensors()
    u = tuple(t / 9 for t in like(x, seed))
    if is_half(inputs):  # a number beyond 4 does not move by what moves smaller ones
        u = tuple(t * (a.detach().abs() / 4).clamp(min=1, max=8) for t, a in zip(u, x, strict=True))
    if in_proportion:  # an element moves by a share of itself
        u = tuple(t * a.abs().clamp(max=1) for t, a in zip(u, x, strict=True))
    if any(is_symmetric(t, ROUNDED) for t in x):  # a solver for such matrices may have no end for others
        finding = _in_direction(trial, inputs, u, seed, is_beside=is_beside, explains=False)
        if finding.status is not Status.BROKEN:
            return finding
        v = like(tuple(t.detach() for t in surrogate_of(trial, inputs)(*x)), seed + 1)
        grads = value_and_gradients(trial, inputs, v)[1]
        u = kept_symmetric(inputs, u, surrogate_of(trial, inputs), grads) or u
    return _in_direction(trial, inputs, u, seed, is_beside=is_beside, explains=explains)


def _in_direction(
    trial: Trial,
    inputs: Inputs,
    u: tuple[Tensor, ...],
    seed: int,
    *,
    is_beside: bool,
    is_alone: bool = False,
    explains: bool = True,
) -> Finding:
    x = inputs.tensors()
    v = like(tuple(t.detach() for t in surrogate_of(trial, inputs)(*x)), seed + 1)
    y, grads = value_and_gradients(trial, inputs, v)
    with_graph: tuple[Tensor, ...] = ()
    if any(t.requires_grad for t in y):
        # `mark_non_differentiable`, integers: what carries no gradient moves with the arguments all the same.
        counts = [t.requires_grad for t in y]
        if not is_stand_in(trial.spec.surrogate) and not all(counts):
            # Of a map it is a mistake, unless the function says the same of it, as of a running mean.
            own = quietly(
                lambda: [t.requires_grad for t in outputs(trial.spec.function(*inputs.args(inputs.leaves())))]
            )
            if own != counts:
                with_graph = tuple(w if one else torch.zeros_like(w) for w, one in zip(v, counts, strict=True))
                counts = [differentiable(t) for t in y]
        v = tuple(w if one else torch.zeros_like(w) for w, one in zip(v, counts, strict=True))
    exact = sum(inner(g, b) for g, b in zip(grads, u, strict=True) if g is not None)
    if not math.isfinite(exact):
        said = f"the gradient along a direction is {exact:g}: no numerical derivative compares with it"
        return Finding(status=Status.INCONCLUSIVE, message=said)
    along, dtype = along_direction(trial, inputs, u, v), x[0].dtype.to_real()
    if dtype == torch.float64:  # that of the value: small steps show its rounding
        dtype = torch.float32 if is_alone else dtype_of_all(y)
    if is_half(inputs) and not moves(x, u):
        return Finding(status=Status.INCONCLUSIVE, message="in this precision a step moves no argument as it should")
    try:
        numeric, is_near = _slope(along, dtype)
    except StandInError as error:  # a matrix is positive definite no more, or a number no probability
        said = f"a small step away the function raises {shown(error.__cause__ or error)}: it has no derivative there"
        return Finding(status=Status.INCONCLUSIVE, message=said)
    # Of the value itself and not of the sum: rounding of the terms is what the bar cannot go below.
    size = sum(float((w * t).detach().abs().sum()) for w, t in zip(v, y, strict=True) if t.dtype != torch.bool)
    scale = max(abs(exact), abs(numeric.value), size)
    derivative = max(abs(exact), abs(numeric.value), size / 100)
    is_clear = numeric.bar <= derivative / 1000 if is_alone else numeric.is_clear(scale, dtype)
    if is_clear and numeric.agrees(exact, derivative if is_alone else scale, dtype):
        return HOLDS
    if not is_near and not is_beside and is_kink(along, scale, dtype):
        found = judged_beside(
            inputs,
            seed,
            judge=lambda other: _one_direction(trial, other, seed, is_beside=True),
            gradient=lambda other: value_and_gradients(trial, other, v)[1],
        )
        w = tied(x, seed) if found.status is Status.NOT_MEASURED else None
        if w is None or is_kink(along_direction(trial, inputs, w, v), scale, dtype):
            return found
        together = _in_direction(trial, inputs, w, seed, is_beside=True, explains=False)
        return together.because(TIES) if together.status is Status.BROKEN else found
    if not (is_clear or _is_far(numeric, exact, derivative)):
        said = f"the error bar {numeric.bar:.1e} of the numerical derivative is too wide"
        return Finding(status=Status.INCONCLUSIVE, message=said)
    is_narrow = is_low(inputs) or all(g is None or is_single(g) for g in grads)
    # A bar that is narrow beside the gradient alone says nothing where the function turns within a step.
    own = max(abs(numeric.value), size)
    is_unknown = numeric.is_contradicted or not (numeric.is_clear(own, dtype) or _is_far(numeric, exact, own / 100))
    if numeric.is_refuted_for(exact) or (is_narrow and is_unknown):
        return Finding(status=Status.INCONCLUSIVE, message=_TURNS)
    off, of = abs(exact - numeric.value), max(abs(exact), abs(numeric.value))
    # A declared accuracy is one of each gradient: in their sum along a direction they may cancel.
    terms = sum(float((g * b).detach().abs().sum()) for g, b in zip(grads, u, strict=True) if g is not None)
    if off <= max(left_by_rounding(Inputs.of(trial), inputs.wrt, grads, u), declared(trial.spec, 1) * terms):
        return HOLDS
    if is_narrow and vanishes(lambda at: value_and_gradients(trial, at, v), inputs, u, v, off=off, of=of):
        return HOLDS
    finding = _wrong(trial, inputs, f"{exact:.12g}", numeric)
    if with_graph and _slope(along_direction(trial, inputs, u, with_graph), dtype)[0].agrees(exact, scale, dtype):
        places = [f"output {k}" for k, t in enumerate(y) if not t.requires_grad]
        said = f"the surrogate stops {' and '.join(places)}, to which a graph of the function leads"
        return replace(finding, likely=f"{said}: `ctx.mark_non_differentiable`, or leave out what stops it")
    if not is_stand_in(trial.spec.surrogate) or dtype != torch.float64 or not explains:
        return finding
    others = [tuple(t / 9 for t in like(x, seed + 10 + number)) for number in range(3)]
    lines = [along, *(along_direction(trial, inputs, other, v) for other in others)]
    if off <= _OF_SINGLE * of and is_narrow:
        return unseen(finding)

    def is_right(other: Inputs) -> bool:
        found = (_one_direction(trial, other, seed + k, explains=False) for k in range(2))
        return all(finding.status is Status.HOLDS for finding in found)

    return at_a_tolerance(finding, trial, inputs, u, is_right, off / of) or of_a_solver(finding, lines, off, of, size)


def _is_far(numeric: Slope, exact: float, derivative: float) -> bool:
    """Whether a derivative is another one although its error bar is too wide to say that one is right.

    What computes in float32 on the way has such a bar: a thousandth of the derivative tells no mistake from rounding.
    """
    is_seen = numeric.bar <= derivative / 1000
    return is_seen and abs(exact - numeric.value) > 10 * numeric.bar + _SEEN * derivative


def _slope(along: Callable[[float], float], dtype: torch.dtype) -> tuple[Slope, bool]:
    """Return the numerical derivative, and whether it is one of short steps, where long ones leave the domain."""
    try:
        return slope(along, dtype), False
    except StandInError:
        if dtype != torch.float64:
            raise
        short = slope(lambda step: along(_SHORT * step), dtype)
        return Slope(value=short.value / _SHORT, bar=short.bar / _SHORT), True


def _wrong(trial: Trial, inputs: Inputs, got: str, numeric: Slope) -> Finding:
    if not is_stand_in(trial.spec.surrogate):
        return broken(
            "the surrogate's autograd derivative is not its numerical one",
            argument="directional derivative of the surrogate",
            got=got,
            expected=str(numeric),
            likely=own_backwards(trial.spec.surrogate, inputs),
        )
    return broken(
        "backward does not apply the derivative of what forward computes",
        argument="directional derivative",
        got=got,
        expected=str(numeric),
        details={MEANT: _MEANT},
    )


SURROGATE = Law(
    name="surrogate",
    family="derivative",
    statement=r"\langle v, Ds(x)\,u \rangle = \lim_{h \to 0} \frac{\langle v, s(x + hu) - s(x - hu) \rangle}{2h}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
