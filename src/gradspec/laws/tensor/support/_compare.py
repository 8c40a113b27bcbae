"""One comparison for all laws: elementwise, with a bound that does not grow with the number of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, AnyTrial, Finding, broken
from gradspec.laws.tensor.support._call import differentiable
from gradspec.laws.tensor.support._guess import guess
from gradspec.laws.tensor.support._rounding import FAR, rounding_where_it_vanishes
from gradspec.laws.tensor.support._unit import is_allowed, is_only_noted, note_off
from gradspec.laws.tensor.support._witness import note
from gradspec.spec import FunctionSpec


def compare(
    trial: AnyTrial,
    what: str,
    got: Any,
    expected: Any,
    *,
    is_derivative: bool = False,
    likely: str = "",
    said: str = "",
    times: float = 1.0,
) -> Finding:
    """Return `holds` if two tensors agree in shape, dtype and every element.

    An element may be off by `rtol` of itself plus 8 units of rounding of the largest element; `rtol` is the
    profile's in float64 and 8 units of rounding in a lower precision. What is off by little more is asked about in
    another precision, by the engine (`gradspec._engine._rounding`).

    Args:
        trial: the law's view of the case.
        what: what is compared, "gradient of `x`".
        got: what the function gave: a tensor, or None for no gradient at all.
        expected: what the reference gave; None counts as zero.
        is_derivative: whether they are derivatives, of which little may be left where larger terms cancel.
        likely: the likely cause of a difference.
        said: the sentence of the failure; "WHAT differs" unless told.
        times: how many times larger than numbers from -9 to 9 the cotangent was, where it is a gradient.
    """
    zero = tuple(getattr(trial.spec, "zero_gradient", ()))
    if expected is None and (got is None or not got.any()):
        note(what, None, zero)
        return HOLDS
    if got is None:
        if not expected.any():
            note(what, None, zero)
            return HOLDS
        return broken(
            f"no gradient flows at all: {what} is None",
            argument=what,
            got="None",
            expected=describe(expected),
            likely=likely,
        )
    expected = torch.zeros_like(got) if expected is None else expected
    for trait in ("shape", "dtype"):
        mine, theirs = getattr(got, trait), getattr(expected, trait)
        if mine != theirs:
            return broken(
                f"{what} has the wrong {trait}",
                argument=what,
                got=_plain(mine),
                expected=_plain(theirs),
                likely=likely,
            )
    if is_only_noted():
        note_off(what, distance(got, expected))
        return HOLDS
    finding = _elementwise(trial, what, got.detach(), expected.detach(), is_derivative, likely, said)
    if finding is HOLDS:
        note(what, expected.detach(), zero)
        return HOLDS
    if not differentiable(got):
        return finding  # integers are exact: no rounding excuses them
    far = FAR.get(got.dtype, 0.0) * max(1.0, largest(expected))
    if is_allowed(what, finding.argument, off := distance(got, expected), far=far):
        note(what, expected.detach() if largest(expected) > off else None, zero)
        return HOLDS
    if is_derivative and largest(got - expected) <= (limit := _rounding(trial, got.detach(), expected.detach(), times)):
        # Where no more than the rounding is left, zeros would have been as right.
        note(what, expected.detach() if largest(expected) > limit else None, zero)
        return HOLDS
    return finding


def compare_all(
    trial: AnyTrial,
    what: str,
    got: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    when: str = "",
    is_derivative: bool = True,
    why: Callable[[str], str] = lambda _: "",
    **how: Any,
) -> Finding:
    """Compare by name; return the first finding that does not hold, with the cause that `why` gives for that name.

    What is compared is called "gradient of `x`", or "gradient of `x` (transposed cotangent)" for `when`.
    """
    for name in expected:
        called = (f"{what} {name}" if "`" in name else f"{what} of `{name}`") + (f" ({when})" if when else "")
        finding = compare(trial, called, got[name], expected[name], is_derivative=is_derivative, **how)
        if finding is not HOLDS:
            return replace(finding, likely=said, reason=None) if (said := why(name)) else finding
    return HOLDS


def _rounding(trial: AnyTrial, got: Tensor, expected: Tensor, times: float) -> float:
    """Return how far two derivatives may lie apart by rounding alone; -1.0 where nothing excuses them."""
    if got.dtype not in FAR or not isinstance(trial.spec, FunctionSpec):
        return -1.0
    is_finite = bool((got - expected).isfinite().all())
    if not is_finite or largest(got - expected) > FAR[got.dtype]:  # no reference need run again
        return -1.0
    try:
        return rounding_where_it_vanishes(trial, largest(expected), times)  # type: ignore[arg-type]  # asked above
    except Exception:  # it was to excuse a difference, and excuses nothing then
        return -1.0


def largest(tensor: Tensor) -> float:
    """Return the largest absolute value, of those that are finite."""
    size = tensor.detach().abs()
    return float(size[size.isfinite()].max()) if bool(size.isfinite().any()) else 0.0


def distance(got: Tensor, expected: Tensor) -> float:
    """Return how far apart two tensors of one shape are at most: infinite where only one is a number."""
    if not differentiable(got):
        got, expected = got.double(), expected.double()  # unsigned integers have no difference below 0, booleans none
    same = (got == expected) | (got.isnan() & expected.isnan())
    apart = (got - expected).detach().abs().nan_to_num(nan=torch.inf).where(~same, 0)
    return float(apart.max()) if apart.numel() else 0.0


def describe(value: Any) -> str:
    """Return a value as a message shows it: a tensor as `float64[3, 4]`."""
    if isinstance(value, Tensor):
        return f"{_plain(value.dtype)}{list(value.shape)}"
    if isinstance(value, tuple | list):
        inner = ", ".join(map(describe, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def _elementwise(
    trial: AnyTrial, what: str, got: Tensor, expected: Tensor, is_derivative: bool, likely: str, said: str
) -> Finding:
    if got.numel() == 0 or torch.equal(got, expected):
        return HOLDS
    if not differentiable(got):
        wrong = got != expected
        error = wrong.double()
    else:
        rounding = torch.finfo(got.dtype).eps
        rtol = trial.profile.rtol if got.dtype in (torch.float64, torch.complex128) else 8 * rounding
        error = (got - expected).abs()
        size = expected.abs()
        top = size.max()
        # The usual end, without a look at infinities: next to one every bound is infinite.
        if top.isfinite() and bool((error <= (rtol * size).add_(8 * rounding * top)).all()):
            return HOLDS
        same = (got == expected) | (got.isnan() & expected.isnan())
        finite = torch.where(expected.isfinite(), expected, torch.zeros_like(expected))
        # `not (error <= bound)` rather than `error > bound`: a NaN is wrong.
        wrong = ~same & ~(error <= rtol * finite.abs() + 8 * rounding * finite.abs().max())
        error = torch.where(wrong, error.nan_to_num(nan=torch.inf), torch.zeros_like(error))
    if not wrong.any():
        return HOLDS
    worst = int(error.flatten().argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(worst), got.shape)] if got.ndim else []
    differs = "is NaN" if bool(got[wrong].isnan().all()) else "differs"
    return broken(
        said or f"{what} {differs} in {int(wrong.sum())} of {got.numel()} elements",
        argument=f"{what}, {describe(expected)}",
        index=str(index),
        got=_number(got.flatten()[worst]),
        expected=_number(expected.flatten()[worst]),
        likely=likely,
        reason=None if likely else guess(got, expected, is_derivative=is_derivative),
    )


def _number(value: Tensor) -> str:
    number = value.item()
    return f"{number:.12g}" if isinstance(number, float | complex) else str(number)


def _plain(trait: Any) -> str:
    return str(trait).removeprefix("torch.") if isinstance(trait, torch.dtype) else str(list(trait))
