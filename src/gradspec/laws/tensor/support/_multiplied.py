"""By what a backward multiplies the cotangent: a number, or an option of the call, as that of a reversal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._compare import largest

#: What a number may be of an option, in words.
_OF_AN_OPTION: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("`{}`", lambda value: value),
    ("-`{}`", lambda value: -value),
    ("1 / `{}`", lambda value: 1 / value),
    ("-1 / `{}`", lambda value: -1 / value),
)
#: How far two numbers may be apart that rounding takes apart.
_DIGITS = 1e-6


def multiplier(trial: Trial, inputs: Inputs, names: Sequence[str]) -> str:
    """Return by what backward multiplies the cotangent, a number or the negative of an option; empty if by neither.

    That it is an option is shown by another value of that.
    """
    number = _factor(trial, inputs, names)
    if number is None:
        return ""
    if number == 1:
        return "hands on the cotangent"
    for name, value in inputs.values.items():
        if type(value) not in (int, float) or not value:
            continue
        other = 2 * value
        for words, of in _OF_AN_OPTION:
            changed = _factor(trial, Inputs({**inputs.values, name: other}, inputs.wrt), names)
            if _are_equal(number, of(value)) and changed is not None and _are_equal(changed, of(other)):
                return f"multiplies the cotangent by {words.format(name)}"
    return f"multiplies the cotangent by {number:.4g}"


def _factor(trial: Trial, inputs: Inputs, names: Sequence[str]) -> float | None:
    """Return the number by which the gradients of some arguments are the cotangent of the one output; None if none."""
    y = outputs(trial.spec.surrogate(*inputs.args()))
    if len(y) != 1 or not differentiable(y[0]) or y[0].is_complex():
        return None
    (v,) = like(y, trial.seed)
    found = vjp(trial.spec.surrogate, inputs, (v.clone(),))
    ratios = [None if g is None or g.shape != v.shape else (g / v)[v != 0] for g in (found[name] for name in names)]
    first = next((float(r.flatten()[0]) for r in ratios if r is not None and r.numel()), None)
    if first is None or any(r is None or largest(r - first) > _DIGITS * abs(first) for r in ratios):
        return None
    return 1.0 if _are_equal(first, 1.0) else first


def _are_equal(one: float, other: float) -> bool:
    return abs(one - other) <= _DIGITS * abs(other)
