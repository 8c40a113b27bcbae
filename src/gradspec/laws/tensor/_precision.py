r"""In low precision the function is as accurate as its reference, and keeps the dtype.

The law runs in float32, and in bfloat16 and float16 if autocast is promised, which passes such tensors.

Why it matters: models are trained in low precision; noise or a constant in another dtype promotes everything after it,
or loses its digits.

What breaks it: noise drawn in float32 whatever the input, a constant that promotes, a difference of large numbers.

Remedy: create tensors with the dtype of the input, and accumulate in float32.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Status, Trial, broken, not_applicable, shown
from gradspec.laws.tensor.support._bound import Limits
from gradspec.laws.tensor.support._bounded import bound_by
from gradspec.laws.tensor.support._call import (
    Inputs,
    SpecFaultError,
    StandInError,
    differentiable,
    like,
    outputs,
    vjp,
)
from gradspec.laws.tensor.support._compare import compare, describe, distance, largest, of_right_numbers
from gradspec.laws.tensor.support._differences import double, overflows
from gradspec.laws.tensor.support._limits import gradient_limits, value_limits
from gradspec.laws.tensor.support._reference import as_reference, is_stand_in, on_spec_side, reference

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


#: The likely cause of a small error; a large one is not a rounding.
ROUNDED = "an intermediate result is rounded to a lower precision"
#: By what is compared: the reference in the low precision, and the float64 answer for the same inputs.
Columns = dict[str, tuple[Any, Any]]


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt or any(inputs.values[name].dtype != torch.float64 for name in inputs.wrt):
        return not_applicable("no float64 input in this case, to be rounded")
    judged, unasked, bounded = 0, "", bound_by(lambda: _plainly(trial, inputs))
    for dtype in DTYPES if trial.spec.supports.autocast else DTYPES[:1]:
        rounded = Inputs({n: _rounded(v, dtype) for n, v in inputs.values.items()}, inputs.wrt)
        if overflows(inputs, rounded):
            continue
        try:
            with bounded():
                v = like(outputs(on_spec_side("primal", trial.spec.primal, *rounded.args())), trial.seed)
                with as_reference(trial.spec):
                    theirs = _reference(trial, rounded, v)
        except StandInError as refusal:
            said = shown(refusal.__cause__ or refusal)
            unasked = unasked or f"nobody has asked for {str(dtype).removeprefix('torch.')}, in which it raises {said}"
            continue  # an audit promises what the calls at hand show
        except SpecFaultError:
            continue  # torch has not all of these operations in this dtype
        try:
            with bounded():
                ours = _given(trial, rounded, v)
        except (TypeError, RuntimeError) as refusal:
            if dtype is torch.float32 or not _is_about_dtype(refusal):
                raise
            continue  # not every kernel is there for half precision, and this one says so
        judged += 1
        is_alone = is_stand_in(trial.spec.primal) and is_stand_in(trial.spec.surrogate)
        limits = {} if is_alone else _limits(trial, rounded, v, ours)
        for what, got in ours.items():
            plain, right = theirs[what]
            if got is None or plain is None or right is None:
                continue  # that a gradient is missing is for the law vjp to say
            may_be_lost = dtype is torch.float32 and is_stand_in(trial.spec.surrogate)
            if (
                may_be_lost
                and (lost := _undefined(what, got, right)) is not HOLDS
                and _has_finite_values(trial, rounded)
            ):
                return lost
            stands_in = trial.spec.primal if what.startswith("output") else trial.spec.surrogate
            if is_stand_in(stands_in):
                continue  # the function would be compared with itself
            if (finding := _judge(trial, what, got, plain, limits[what])) is not HOLDS:
                return finding
    return HOLDS if judged else not_applicable(unasked or "no lower precision has these numbers, or the primal")


def _plainly(trial: Trial, inputs: Inputs) -> None:
    """Call the reference, and the function with its backward."""
    reference(trial.spec)(*inputs.args())
    _given(trial, inputs, like(outputs(trial.spec.function(*inputs.args())), trial.seed))


def _has_finite_values(trial: Trial, rounded: Inputs) -> bool:
    return all(bool(y.isfinite().all()) for y in outputs(trial.spec.function(*rounded.args())))


def _undefined(what: str, got: Tensor, right: Tensor) -> Finding:
    """Return the finding that a gradient is NaN in float32 which is a number in float64.

    In an audit the function itself is what its results are compared with, and has the same NaN.
    """
    off = got.isnan() & right.isfinite()
    if not bool(off.any()):
        return HOLDS
    place = tuple(off.nonzero()[0].tolist())
    return broken(
        f"{what} is NaN in float32 in {int(off.sum())} of {off.numel()} elements, and the value is finite",
        argument=f"{what}, {describe(got)}",
        index=str(list(place)),
        got="nan",
        expected=f"{right[place].item():.6g} in float64",
        reason=Reason(kind="nan", words="", of_function=True),
    )


def _given(trial: Trial, rounded: Inputs, v: tuple[Tensor, ...]) -> dict[str, Tensor | None]:
    """Return what the function gives: its gradients and outputs, by what is compared."""
    mine, given = vjp(trial.spec.function, rounded, v), outputs(trial.spec.function(*rounded.args()))
    ours: dict[str, Tensor | None] = {f"gradient of `{n}`": mine[n] for n in rounded.wrt}
    return ours | {f"output {k}": y for k, y in enumerate(given) if differentiable(y)}


def _limits(
    trial: Trial, rounded: Inputs, v: tuple[Tensor, ...], ours: Mapping[str, Tensor | None]
) -> dict[str, Limits | None]:
    """Return the limits of what the function gives, by what is compared."""
    of_gradients = gradient_limits(trial, rounded, v, {n: ours[f"gradient of `{n}`"] for n in rounded.wrt})
    values = {int(what.removeprefix("output ")): y for what, y in ours.items() if what.startswith("output")}
    of_values = value_limits(trial, rounded, {place: y for place, y in values.items() if y is not None})
    limits: dict[str, Limits | None] = {f"gradient of `{n}`": one for n, one in of_gradients.items()}
    return dict.fromkeys(ours) | limits | {f"output {place}": one for place, one in of_values.items()}


def _rounded(value: Any, dtype: torch.dtype) -> Any:
    if not differentiable(value):
        return value
    return value.to(dtype.to_complex() if value.is_complex() else dtype)


def _is_about_dtype(error: Exception) -> bool:
    """Whether an error says that no kernel takes half precision: mixed dtypes are the mistake of the function."""
    no_kernel = r"not implemented for '(BFloat16|Half)'|unsupported ScalarType|Unsupported dtype (BFloat16|Half)"
    return re.search(no_kernel, str(error)) is not None


def _reference(trial: Trial, rounded: Inputs, v: tuple[Tensor, ...]) -> Columns:
    exact = Inputs({n: double(t) if differentiable(t) else t for n, t in rounded.values.items()}, rounded.wrt)
    v_exact = tuple(double(t) for t in v)
    low, high = vjp(reference(trial.spec), rounded, v), vjp(reference(trial.spec), exact, v_exact)
    y, y_exact = (outputs(on_spec_side("primal", trial.spec.primal, *given.args())) for given in (rounded, exact))
    columns: Columns = {f"gradient of `{n}`": (low[n], high[n]) for n in rounded.wrt}
    return columns | {f"output {k}": column for k, column in enumerate(zip(y, y_exact, strict=True))}


def _judge(trial: Trial, what: str, got: Tensor, plain: Tensor, limits: Limits | None) -> Finding:
    if got.dtype != plain.dtype:
        if got.dtype in DTYPES and torch.promote_types(got.dtype, plain.dtype) == plain.dtype:
            return HOLDS  # the function keeps the dtype, and a constant of the primal promotes: no measure of it
        return broken(
            f"{what} has another dtype in low precision",
            argument=what,
            got=describe(got),
            expected=describe(plain),
            likely=of_right_numbers(got, plain),
        )
    if limits is None or (finding := compare(trial, what, got, plain, limits=limits)) is HOLDS:
        return HOLDS
    if finding.status is not Status.BROKEN:
        return finding
    error = distance(double(got), limits.right)
    is_small = error < 0.05 * largest(limits.right)
    return replace(
        finding,
        message=f"{what} is less accurate than the reference in {describe(got)}",
        argument=what,
        likely=ROUNDED if is_small else finding.likely,
        reason=None if is_small else finding.reason,
        rank=Rank.WASTE if is_small else Rank.WRONG,
    )


PRECISION = Law(
    name="precision",
    family="values",
    statement=r"|F_{16}(x) - r_{64}(x)|_i \le u\,|r_{64}(x)|_i + \lambda\,S_i",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
