"""One comparison for all laws: elementwise, with the bound of a reference where a law has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec._finding import ALSO, SINGLE
from gradspec.law import HOLDS, AnyTrial, Finding, Rank, Reason, broken
from gradspec.laws.tensor.support._bound import HEADROOM, Limits, declared
from gradspec.laws.tensor.support._call import WIDE, differentiable
from gradspec.laws.tensor.support._differences import double
from gradspec.laws.tensor.support._guess import SHORT, guess, of_float32
from gradspec.laws.tensor.support._reference import is_audited
from gradspec.laws.tensor.support._rounding import FAR, rounding_of_values, rounding_where_it_vanishes
from gradspec.laws.tensor.support._unit import is_allowed, is_only_noted, note_off
from gradspec.laws.tensor.support._witness import note, subject
from gradspec.spec import FunctionSpec

NO_LIMITS: Mapping[str, Limits | None] = {}
#: A difference in float64 that is smaller, of the largest element, is far below the unit of rounding of float32: no
#: training in float32 sees it, and what is computed in float32 inside is farther off.
UNSEEN = torch.finfo(torch.float32).eps / 64
#: How much nearer two results are that are one but for rounding than two that differ.
_NEAR = 1e-3
#: What a call gives, by name; None for no gradient.
Results = Mapping[str, Tensor | None]


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
    limits: Limits | None = None,
) -> Finding:
    """Return `holds` if two tensors agree in shape, dtype and every element.

    An element may be off by `rtol` of itself plus 8 units of rounding of the largest element; `rtol` is the
    profile's in float64 and 8 units of rounding in a lower precision, or what the spec declares of its accuracy. What
    is off by little more is asked about in another precision, by the engine (`gradspec._engine._rounding`). Where a law
    has the limits that a reference in float64 gives, these decide.

    Args:
        trial: the law's view of the case.
        what: what is compared, "gradient of `x`".
        got: what the function gave: a tensor, or None for no gradient at all.
        expected: what the reference gave; None counts as zero.
        is_derivative: whether they are derivatives, which may be small if larger terms cancel.
        likely: the likely cause of a difference.
        said: the sentence of the failure; "WHAT differs" unless told.
        times: how many times larger than numbers from -9 to 9 the cotangent was, where it is a gradient.
        limits: what is right in float64, and how far each element may be off.
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
            f"{what} is None",
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
                likely=likely or (of_right_numbers(got, expected) if trait == "dtype" else ""),
            )
    if is_only_noted():
        note_off(what, distance(got, expected))
        return HOLDS
    if limits is not None and differentiable(got):
        finding = _within(limits, what, got.detach(), expected.detach(), zero, is_derivative, likely, said)
        return _unless_it_vanishes(trial, finding, what, got, expected, is_derivative, times, zero)
    finding = _elementwise(trial, what, got.detach(), expected.detach(), is_derivative, likely, said)
    if finding is HOLDS:
        note(what, expected.detach(), zero, lambda: allowed(trial, expected.detach()))
        return HOLDS
    if not differentiable(got):
        return finding  # integers are exact: no rounding excuses them
    far = FAR.get(got.dtype, 0.0) * max(1.0, largest(expected))
    if is_allowed(what, finding.argument, off := distance(got, expected), far=far):
        note(what, expected.detach() if largest(expected) > off else None, zero)
        return HOLDS
    return _unless_it_vanishes(trial, finding, what, got, expected, is_derivative, times, zero)


def of_right_numbers(got: Tensor, expected: Tensor) -> str:
    """Say that two results of different dtypes are one as far as the lower of these holds it."""
    if not (differentiable(got) and differentiable(expected) and expected.any()):
        return ""
    mine, theirs = (torch.finfo(t.dtype).eps for t in (got, expected))
    if not distance(double(got), double(expected)) <= 8 * max(mine, theirs) * largest(expected):
        return ""
    right, dtype = "the numbers are right", _plain(expected.dtype)
    if mine > theirs:
        return f"{right} to the rounding of {_plain(got.dtype)}: compute them, and return them, in {dtype}"
    return f"{right}: return them in {dtype}"


def _unless_it_vanishes(
    trial: AnyTrial,
    finding: Finding,
    what: str,
    got: Tensor,
    expected: Tensor,
    is_derivative: bool,
    times: float,
    zero: tuple[str, ...],
) -> Finding:
    """Return a finding, or that a result holds because only rounding is left of it."""
    if finding is HOLDS or not (is_derivative or subject(what) == "value"):
        return finding
    if largest(got - expected) > (limit := _rounding(trial, got.detach(), expected.detach(), times, is_derivative)):
        return finding
    # Zeros would have been as right.
    note(what, expected.detach() if largest(expected) > limit or not is_derivative else None, zero)
    return HOLDS


def compare_all(
    trial: AnyTrial,
    what: str,
    got: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    when: str = "",
    is_derivative: bool = True,
    why: Callable[[str], str] = lambda _: "",
    limits: Mapping[str, Limits | None] = NO_LIMITS,
    **how: Any,
) -> Finding:
    """Compare by name; return the first finding that does not hold, with the cause that `why` gives for that name.

    What is compared is called "gradient of `x`", or "gradient of `x` (transposed cotangent)" for `when`.
    """
    found: dict[str, Finding] = {}
    for name in expected:
        called = (f"{what} {name}" if "`" in name else f"{what} of `{name}`") + (f" ({when})" if when else "")
        bound = limits.get(name)
        finding = compare(trial, called, got[name], expected[name], is_derivative=is_derivative, limits=bound, **how)
        if finding is not HOLDS:
            found[name] = finding
    if not found:
        return HOLDS
    first, *others = found
    finding = found[first]
    if others:
        also = ", ".join(name if "`" in name else f"`{name}`" for name in others)
        finding = replace(finding, details={**finding.details, ALSO: f"{what} of {also}"})
    return replace(finding, likely=said, reason=None) if (said := why(first)) else finding


def _rounding(trial: AnyTrial, got: Tensor, expected: Tensor, times: float, is_derivative: bool) -> float:
    """Return how far two results may differ because of rounding; -1.0 if nothing excuses them."""
    if got.dtype not in FAR or not isinstance(trial.spec, FunctionSpec):
        return -1.0
    is_finite = bool((got - expected).isfinite().all())
    if not is_finite or largest(got - expected) > FAR[got.dtype]:  # no reference need run again
        return -1.0
    try:
        if not is_derivative:
            return rounding_of_values(trial)  # type: ignore[arg-type]  # asked above
        return rounding_where_it_vanishes(trial, largest(expected), times)  # type: ignore[arg-type]
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


def is_one(got: Results, other: Results, *, but: Results) -> bool:
    """Whether two calls give one result, by name, and a third one another: by far nearer to each other than to it."""
    off, near = apart(other, but), apart(got, other)
    return off > 0 and near <= (_NEAR * off if off < torch.inf else 0.0)


def apart(got: Results, expected: Results) -> float:
    """Return how far apart results are at most, by name: infinite where one has none, or one of another shape."""
    if got.keys() != expected.keys():
        return torch.inf
    return max((_apart(got[name], right) for name, right in expected.items()), default=0.0)


def _apart(mine: Tensor | None, theirs: Tensor | None) -> float:
    if mine is None or theirs is None:
        return 0.0 if mine is theirs else torch.inf
    return distance(mine.detach(), theirs.detach()) if mine.shape == theirs.shape else torch.inf


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
        return _off(what, got, expected, wrong, wrong.double(), is_derivative, likely, said)
    error = (got - expected).abs()
    # The usual end, without a look at infinities: next to one every bound is infinite.
    if bool(expected.isfinite().all()) and bool((error <= allowed(trial, expected)).all()):
        return HOLDS
    rounding = torch.finfo(got.dtype).eps
    same = (got == expected) | (got.isnan() & expected.isnan()) | _overflow(got, expected)
    finite = torch.where(expected.isfinite(), expected, torch.zeros_like(expected)).abs()
    # `not (error <= bound)` rather than `error > bound`: a NaN is wrong.
    wrong = ~same & ~(error <= allowed(trial, finite))
    error = torch.where(wrong, error.nan_to_num(nan=torch.inf), torch.zeros_like(error))
    if not wrong.any():
        return HOLDS
    finding = _off(what, got, expected, wrong, error, is_derivative, likely, said)
    # A spec says how exact its function is; of any other call it is only known that float32 would not see it.
    if isinstance(trial.spec, FunctionSpec) and is_audited(trial.spec) and of_float32(got, expected):
        return by_float32(finding)
    if rounding < torch.finfo(torch.float32).eps and float(error.max()) <= UNSEEN * float(finite.max()):
        return _last_digits(finding, float(error.max() / finite.max()))
    return finding


def _overflow(got: Tensor, expected: Tensor) -> Tensor:
    """Return where one is infinite, and the other one near the largest number: there the order decides which is."""
    if got.is_complex():
        return torch.zeros_like(got, dtype=torch.bool)
    near, lesser = torch.finfo(got.dtype).max / HEADROOM, torch.minimum(got.abs(), expected.abs())
    return (got.isinf() | expected.isinf()) & (lesser >= near) & (got.sign() == expected.sign())


def by_float32(finding: Finding) -> Finding:
    """Return a finding of a difference that is no larger than float32 rounds: digits are lost."""
    is_narrow = finding.reason is not None and finding.reason.kind == "narrow"
    why = finding.reason if is_narrow else Reason(kind="digits", words=SHORT)
    return unseen(replace(finding.because(why), details={**finding.details, SINGLE: True}))


def unseen(finding: Finding) -> Finding:
    """Return a finding of a difference that no training in float32 sees, with those words, once."""
    said = finding.message if finding.rank == Rank.WASTE else f"{finding.message}, by no more than float32 rounds"
    return replace(finding, message=said, rank=Rank.WASTE)


def allowed(trial: AnyTrial, expected: Tensor) -> Tensor:
    """Return how far each element may be off of one that is expected; none where no number is rounded."""
    size = expected.abs()
    if not differentiable(expected):
        return torch.zeros_like(size)
    rounding, off = torch.finfo(expected.dtype).eps, declared(trial.spec, expected.numel())
    rtol = max(off, trial.profile.rtol if expected.dtype in WIDE else 8 * rounding)
    return (rtol * size).add_((8 * rounding + off) * size.max())


def _within(
    limits: Limits,
    what: str,
    got: Tensor,
    expected: Tensor,
    zero: tuple[str, ...],
    is_derivative: bool,
    likely: str,
    said: str,
) -> Finding:
    """Return `holds` if each element lies within what rounding may make of it."""
    if not got.numel():
        return HOLDS
    wide, right = double(got), limits.right
    wrong = limits.wrong(got) & ~(got == expected) & ~(got.isnan() & expected.isnan())
    if not bool(wrong.any()):
        if (gain := limits.gain(wide)) != 1.0:
            return _gained(what, got, right, gain)
        note(what, right if bool((right.abs() > limits.close).any()) else None, zero, lambda: limits.allowed)
        return HOLDS
    error = (wide - right).abs()
    error = torch.where(wrong, error.nan_to_num(nan=torch.inf), torch.zeros_like(error))
    return _off(what, got, right.to(got.dtype), wrong, error, is_derivative, likely, said)


def _off(
    what: str,
    got: Tensor,
    expected: Tensor,
    wrong: Tensor,
    error: Tensor,
    is_derivative: bool,
    likely: str,
    said: str,
) -> Finding:
    """Return the finding that some elements are wrong, and which of them by most."""
    differs = "is NaN" if bool(got[wrong].isnan().all()) else "differs"
    return broken(
        said or f"{what} {differs} in {int(wrong.sum())} of {got.numel()} elements",
        argument=f"{what}, {describe(expected)}",
        **element(int(error.flatten().argmax()), got, expected),
        likely=likely,
        reason=None if likely else guess(got, expected, is_derivative=is_derivative),
    )


def _gained(what: str, got: Tensor, right: Tensor, gain: float) -> Finding:
    """Return the finding that a result is off by a factor that no element shows by itself."""
    worst = int(right.abs().flatten().argmax())
    return broken(
        f"{what} is off by the factor {gain:.6g}: each element could be rounding, and all of them together are not",
        argument=f"{what}, {describe(got)}",
        got=_number(got.flatten()[worst]),
        expected=_number(right.flatten()[worst]),
        reason=Reason(kind="factor", words=f"off by the factor {gain:.6g}", evidence={"factor": gain}),
    )


def _last_digits(finding: Finding, off: float) -> Finding:
    """Return a finding of a difference that no training in float32 could see: a solver that stops, a short constant."""
    said = (
        f"{finding.message}, by {off:.1g} of the largest element, which float32 does not hold: declare what a solver "
        "stops at, `accuracy=Accuracy(rtol=...)`, or `--accuracy rtol=...` of an audit"
    )
    return replace(finding, message=said, rank=Rank.WASTE)


def element(number: int, got: Tensor, expected: Tensor) -> dict[str, str]:
    """Return an element, by its number in the flattened tensors, as the facts of a finding."""
    index = [int(i) for i in torch.unravel_index(torch.tensor(number), got.shape)] if got.ndim else []
    values = {"got": _number(got.flatten()[number]), "expected": _number(expected.flatten()[number])}
    return {"index": str(index)} | values


def unless_zero(got: Tensor) -> dict[str, str]:
    """Return the largest element of what should be zero, as the facts of a finding."""
    size = got.detach().abs().nan_to_num(nan=torch.inf)
    return element(int(size.flatten().argmax()), got, torch.zeros_like(got))


#: How many digits tell one number of a dtype from the next, by its bytes; of float64 fewer are readable.
_DIGITS = {1: 4, 2: 5, 4: 9}


def _number(value: Tensor) -> str:
    number = value.item()
    digits = _DIGITS.get(value.dtype.to_real().itemsize, 12)
    return f"{number + 0:.{digits}g}" if isinstance(number, float | complex) else str(number)


def _plain(trait: Any) -> str:
    return str(trait).removeprefix("torch.") if isinstance(trait, torch.dtype) else str(list(trait))
