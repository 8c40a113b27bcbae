r"""In low precision the function is as accurate as its reference, and keeps the dtype.

The law runs in float32, and in bfloat16 and float16 if autocast is promised, which passes such tensors.

Why it matters: models are trained in low precision; noise or a constant in another dtype promotes everything after it,
or loses its digits.

What breaks it: noise drawn in float32 whatever the input, a constant that promotes, a difference of large numbers.

Remedy: create tensors with the dtype of the input, and accumulate in float32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken, not_applicable, shown
from gradspec.laws.tensor.support._call import (
    Inputs,
    SpecFaultError,
    StandInError,
    differentiable,
    like,
    outputs,
    resembling,
    vjp,
)
from gradspec.laws.tensor.support._compare import describe, largest
from gradspec.laws.tensor.support._differences import double
from gradspec.laws.tensor.support._reference import as_reference, is_stand_in, on_spec_side, reference

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


#: How many calls that resemble a case say how accurate the reference is, where the case says that it is exact.
RESEMBLING = 8
#: On how many of them a result that is less accurate than the reference by little must be so again, once.
AGAIN = 3

#: How far below the largest number a result must lie for an infinity to be the mistake of the function: nearer to it
#: the order of the operations decides whether one of them overflows.
HEADROOM = 64
#: The likely cause of a small error; a large one is not a rounding.
ROUNDED = "an intermediate result is rounded to a lower precision"
#: By what is compared: the reference in the low precision, and the float64 answer for the same inputs.
Columns = dict[str, tuple[Any, Any]]


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt or any(inputs.values[name].dtype != torch.float64 for name in inputs.wrt):
        return not_applicable("no float64 input in this case, to be rounded")
    judged, unasked = 0, ""
    for dtype in DTYPES if trial.spec.supports.autocast else DTYPES[:1]:
        rounded = Inputs({n: _rounded(v, dtype) for n, v in inputs.values.items()}, inputs.wrt)
        try:
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
            ours = _given(trial, rounded, v)
        except (TypeError, RuntimeError) as refusal:
            if dtype is torch.float32 or not _is_about_dtype(refusal):
                raise
            continue  # not every kernel is there for half precision, and this one says so
        judged += 1
        for what, got in ours.items():
            plain, right = theirs[what]
            if got is None or plain is None or right is None:
                continue  # that a gradient is missing is for the law vjp to say
            is_alone = dtype is torch.float32 and is_stand_in(trial.spec.surrogate)
            if is_alone and (lost := _undefined(what, got, right)) is not HOLDS and _has_finite_values(trial, rounded):
                return lost
            if _judge(what, got, plain, right, 0.0) is not HOLDS:
                columns = (_reference(trial, other, v)[what] for other in _resembling(trial, rounded))
                error = max(largest(double(low) - high) for low, high in columns)
                finding = _judge(what, got, plain, right, error)
                if finding is not HOLDS and (finding.rank != Rank.WASTE or _lasts(trial, rounded, v, what, error)):
                    return finding
    return HOLDS if judged else not_applicable(unasked or "the primal has no low precision in torch")


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


def _lasts(trial: Trial, rounded: Inputs, v: tuple[Tensor, ...], what: str, error: float) -> bool:
    """Whether a result that is less accurate than the reference by little is so on calls that resemble the case too.

    Of a few elements the reference is more accurate by luck, of one call in some thousand more than twice. What is
    rounded inside is so on each.
    """
    for other in islice(_resembling(trial, rounded), AGAIN):
        got, (plain, right) = _given(trial, other, v)[what], _reference(trial, other, v)[what]
        if _judge(what, got, plain, right, error) is not HOLDS:  # type: ignore[arg-type]  # as on the case, each is there
            return True
    return False


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


def _resembling(trial: Trial, rounded: Inputs) -> Iterator[Inputs]:
    given = tuple(rounded.values[n] for n in rounded.wrt)
    for k in range(1, RESEMBLING + 1):
        others = dict(zip(rounded.wrt, resembling(given, trial.seed + k), strict=True))
        yield Inputs({**rounded.values, **others}, rounded.wrt)


def _judge(what: str, got: Tensor, plain: Tensor, right: Tensor, elsewhere: float) -> Finding:
    if got.dtype != plain.dtype:
        if got.dtype in DTYPES and torch.promote_types(got.dtype, plain.dtype) == plain.dtype:
            return HOLDS  # the function keeps the dtype, and a constant of the primal promotes: no measure of it
        return broken(
            f"{what} has another dtype in low precision", argument=what, got=describe(got), expected=describe(plain)
        )
    error, slack = (double(got) - right).abs(), 2 * (double(plain) - right).abs()
    limit = torch.finfo(plain.dtype).max / HEADROOM
    judged = slack.isfinite() & right.isfinite() & (got.isfinite() | (right.abs() < limit))
    if not bool(judged.any()):
        return HOLDS
    # Not farther from the float64 answer than twice the reference in the same dtype, plus one unit of rounding: of its
    # worst element, for behind a sum the reference is exact in one element or the other only by luck. Where the case
    # is so small that it is exact in all of them, its error on calls that resemble the case counts too.
    #   |F_16 - F_64| <= 2 max |r_16 - r_64| + eps_16 max |F_64| + tiny
    # The first term is what the operations of the reference lose in this precision, twice, since the function may group
    # them otherwise; the second is the rounding of the result itself; tiny is the least normal number, below which
    # results are rounded absolutely (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 2.2).
    unit = torch.finfo(plain.dtype).eps * right[judged].abs().max() + torch.finfo(plain.dtype).tiny
    wrong = judged & ~(error <= slack[judged].max().clamp_min(2 * elsewhere) + unit)  # rather than `>`: a NaN is wrong
    if not bool(wrong.any()):
        return HOLDS
    worst = int(error.nan_to_num(nan=torch.inf).where(wrong, 0).flatten().argmax())
    is_small = float(error[wrong].max()) < 0.05 * float(right[judged].abs().max())
    return broken(
        f"{what} is less accurate than the reference in {describe(got)}",
        argument=what,
        got=f"{got.flatten()[worst].item():.6g}",
        expected=f"{right.flatten()[worst].item():.6g}",
        likely=ROUNDED if is_small else "",
        rank=Rank.WASTE if is_small else Rank.WRONG,
    )


PRECISION = Law(
    name="precision",
    family="values",
    statement=r"\|F_{16}(x) - F_{64}(x)\|_\infty \le 2\,\|r_{16}(x) - r_{64}(x)\|_\infty + \text{ulp}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
