r"""Backward is linear in the cotangent.

Why it matters: the chain rule hands backward a sum of cotangents; a backward that is not linear gives a result that
depends on how the graph was cut.

What breaks it: clipping, rounding or normalising the cotangent inside backward. A solver that stops at a tolerance is
off by little, and jumps between close cotangents: that it is no more exact is said, and does not fail.

Remedy: move the clipping into a hook or the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec._finding import MEANT
from gradspec.law import HOLDS, Finding, Law, Rank, Status, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp, whole
from gradspec.laws.tensor.support._compare import compare_all, largest, unseen
from gradspec.laws.tensor.support._differences import double, inner, is_single, single
from gradspec.laws.tensor.support._jumps import jump_of
from gradspec.laws.tensor.support._reference import is_stand_in, on_spec_side
from gradspec.laws.tensor.support._solver import REMEDY
from gradspec.spec._gradient import gradient_of

_MEANT = (
    "if it is, as in a clipped gradient, say what backward returns: the option `gradient` of an audit, a check or a "
    "spec"
)
_Cotangents = tuple[Tensor, ...]
_COMPARED = "gradient of the combined cotangent"
#: How far off a gradient may be, of its largest element, that a solver has stopped at.
LITTLE = 1e-2
#: How many times larger than a random cotangent the combined one may be, and what a solver leaves of it.
TIMES = 302


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    y = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    # Whole numbers: their combination is exact in the dtype of the output, which may be lower than the gradient's.
    v, w = (tuple(map(whole, like(y, trial.seed + k))) for k in (0, 1))
    finding = _judged(trial, inputs, trial.spec.function, v, w)
    if finding is not HOLDS and gradient_of(trial.spec.surrogate):
        declared = _judged(trial, inputs, trial.spec.surrogate, v, w)
        if declared.status is Status.BROKEN:
            return not_applicable("the gradient that the spec declares (gradient=) is not linear in the cotangent")
    if finding.status is Status.BROKEN and finding.rank != Rank.WASTE and is_stand_in(trial.spec.surrogate):
        return replace(finding, details={**finding.details, MEANT: _MEANT})
    return finding


def _judged(trial: Trial, inputs: Inputs, function: Callable[..., Any], v: _Cotangents, w: _Cotangents) -> Finding:
    both = vjp(function, inputs, tuple(2 * a - 300 * b for a, b in zip(v, w, strict=True)))
    of_v, of_w = vjp(function, inputs, v), vjp(function, inputs, w)
    expected = {name: None if a is None or (b := of_w[name]) is None else 2 * a - 300 * b for name, a in of_v.items()}
    for name, b in both.items():
        a, theirs = of_v[name], expected[name]
        if a is not None and b is not None and theirs is not None:  # where all are infinite, nothing compares
            expected[name] = theirs.where(~(a.isinf() & b.isinf() & theirs.isnan()), b)
    finding = compare_all(trial, _COMPARED, both, expected, times=TIMES).because(None)
    numbers = [t for found in (both, of_v, of_w) for t in found.values() if t is not None]
    is_new = finding.status is Status.BROKEN and finding.rank != Rank.WASTE
    if is_new and all(map(is_single, numbers)):  # it hands on what it has in float32
        narrow = [{name: t if t is None else single(t) for name, t in found.items()} for found in (both, expected)]
        if compare_all(trial, _COMPARED, *narrow, times=TIMES) is HOLDS:
            # Of an output in float32 the cotangent has no more digits.
            return HOLDS if all(t.dtype == torch.float32 for t in v if differentiable(t)) else unseen(finding)
    if finding.status is not Status.BROKEN or function is not trial.spec.function:
        return finding
    return _of_a_solver(finding, lambda c: vjp(function, inputs, c), (v, w), both, expected)


def _of_a_solver(
    finding: Finding,
    backward: Callable[[_Cotangents], Mapping[str, Tensor | None]],
    of: tuple[_Cotangents, _Cotangents],
    both: Mapping[str, Tensor | None],
    expected: Mapping[str, Tensor | None],
) -> Finding:
    """Return a finding that is no mistake, where backward is an iteration that stops at a tolerance.

    The solver of an adjoint chooses its steps by the size of the cotangent too. Then backward jumps between close
    cotangents, where the number of steps changes, is linear between the jumps, and is off by little. What rounds the
    cotangent jumps as well, and is not linear between: it is constant. What clips or normalises it does not jump.

    Args:
        finding: what is said otherwise.
        backward: the gradients for cotangents.
        of: the cotangents that were combined.
        both: the gradients for the combined cotangent.
        expected: the combined gradients.
    """
    names = [name for name, one in both.items() if one is not None and expected[name] is not None]

    def along(step: float) -> float:
        found = of_names(backward(tuple(b + step / 10 * a for a, b in zip(v, w, strict=True))))
        return sum(inner(a, b) for a, b in zip(found, u, strict=True))

    def of_names(found: Mapping[str, Tensor | None]) -> list[Tensor]:
        return [double(one) for name in names if (one := found[name]) is not None]

    got, right = of_names(both), of_names(expected)
    off = max((largest(a - b) / (largest(b) or 1.0) for a, b in zip(got, right, strict=True)), default=1.0)
    if not off <= LITTLE:
        return finding
    v, w = of
    u = [t / 9 for t in like(tuple(right), 0)]

    def moved(step: float) -> list[Tensor]:
        return of_names(backward(tuple(2 * a - (300 - step) * b for a, b in zip(v, w, strict=True))))

    theirs = of_names(backward(w))
    for step in (2.0**-1, 2.0**-6, 2.0**-11):
        slopes = [(a - b) / (2 * step) for a, b in zip(moved(step), moved(-step), strict=True)]
        if any(largest(a - b) > LITTLE * largest(b) for a, b in zip(slopes, theirs, strict=True)):
            return finding
    size = sum(float((a * b).abs().sum()) for a, b in zip(right, u, strict=True))
    error = abs(sum(inner(a - b, c) for a, b, c in zip(got, right, u, strict=True)))
    jump = TIMES * jump_of(along, size=size / TIMES, least=error / 64 / TIMES)
    if not jump or error > 64 * jump:
        return finding
    said = (
        f"the gradient is linear in the cotangent up to {off:.1g} of itself, and no more exact: it jumps between close "
        "cotangents, as an iteration that stops at a tolerance"
    )
    return replace(finding, message=said, likely=REMEDY, rank=Rank.WASTE)


COTANGENT_LINEARITY = Law(
    name="cotangent_linearity",
    family="derivative",
    statement=r"B(a\,v + b\,w) = a\,B(v) + b\,B(w)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    implied_by=("vjp",),
)
