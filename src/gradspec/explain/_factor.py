"""Whether a gradient is the right one times a number: the simplest mistake, which many others look like by chance."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gradspec.explain._wrong import Wrong, narrowed
from gradspec.law import Reason
from gradspec.laws.tensor.support._bound import declared
from gradspec.laws.tensor.support._call import Inputs, like, outputs
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._guess import factor_reason, narrow_type_of
from gradspec.laws.tensor.support._made_up import can_be_made

#: By what a number is multiplied to see whether a factor moves with it.
_ELSEWHERE = 1.25
#: From which size on one element less is tried.
_LEAST = 3
#: What may be made of a number, or of a tensor, by mistake, or left out.
MADE: dict[str, Callable[[Any], Any]] = {
    "{}": lambda value: value,
    "1 / {}": lambda value: 1 / value,
    "{} squared": lambda value: value**2,
    "1 / {} squared": lambda value: value**-2,
    "1 - {}": lambda value: 1 - value,
    "1 / (1 - {})": lambda value: 1 / (1 - value),
}
#: The same of a size.
_OF_A_SIZE: dict[str, Callable[[Any], Any]] = {
    "{}": lambda size: size,
    "1 / {}": lambda size: 1 / size,
    "{} ** 0.5": lambda size: size**0.5,
    "{} ** -0.5": lambda size: size**-0.5,
    "{0} / ({0} - 1)": lambda size: size / (size - 1),
    "({0} - 1) / {0}": lambda size: (size - 1) / size,
}


def factor(wrong: Wrong) -> Reason | None:
    """Whether it is the right one times a number."""
    got, expected = wrong.got, wrong.expected
    known = declared(wrong.trial.spec, got.numel())
    if (found := factor_of(got, expected, known=known)) is None:
        return None
    found = _to_digits(found, known) if known else found
    number = _as_argument(found, wrong) or _as_size(found, wrong)
    return factor_reason(found, is_everywhere=bool((expected != 0).all()), of=number)


def _to_digits(factor: float, known: float) -> float:
    """Return a factor to the digits in which it is known: a whole number or the inverse of one where it may be that."""
    whole = round(1 / factor)
    if math.isclose(factor, round(factor), rel_tol=known):
        return float(round(factor))
    if whole and math.isclose(1 / factor, whole, rel_tol=known):
        return 1 / whole
    return round(factor, max(1, int(-math.log10(known) - math.log10(abs(factor)))))


def factor_of(got: Tensor, expected: Tensor, *, tells_one: bool = True, known: float = 0.0) -> float | None:
    """Return by which real factor a tensor is off; None where there is no such factor.

    Where the right one is zero, the wrong one must be, too.

    Args:
        got: the tensor.
        expected: what it is compared with.
        tells_one: ask for more digits than tell the factor from 1.
        known: how far off what it is compared with may be, of its largest element.
    """
    there = expected != 0
    if got.shape != expected.shape or not bool(there.any()) or not bool((got.isfinite() & expected.isfinite()).all()):
        return None
    top = expected.abs().max()
    mine, theirs = (t / top for t in (got, expected))
    ratio = torch.sum(mine * theirs.conj()) / torch.sum(theirs * theirs.conj())
    number = complex(ratio.item())
    if not math.isclose(abs(number), abs(number.real)) or number.real == 0:
        return None
    # To more digits than tell it from 1, and not to all of them: in float32 it has seven.
    is_single = got.dtype == torch.float64 and narrow_type_of(got) == "float32"
    least = max(known, 8 * torch.finfo(torch.float32).eps if is_single else 0.0)  # where terms cancel it has fewer
    digits = max(1e-7, 64 * torch.finfo(got.dtype).eps, least)
    digits = min(digits, abs(number.real - 1) / 100) if tells_one else digits
    off = (mine - number.real * theirs).abs()
    if tells_one and least > abs(number.real - 1) / 10:
        return None
    is_it = bool((off <= digits * abs(number.real) * theirs.abs() + least).all()) and not bool(got[~there].any())
    return number.real if is_it else None


def _as_argument(found: float, wrong: Wrong) -> str:
    """Return a factor as what it is of a number that the call is given, as "1 / `scale`"; empty where it is none.

    It is one if it moves with that number.
    """
    for name, value in wrong.inputs.values.items():
        if type(value) is not float or value in (0.0, 1.0, -1.0):
            continue
        for made, of in MADE.items():
            if _is_near(found, of(value)):
                is_it = quietly(partial(_moves_along, wrong, name, _ELSEWHERE * value, of))
                return made.format(f"`{name}`") if is_it else ""
    return ""


def _moves_along(wrong: Wrong, name: str, value: float, of: Callable[[float], float]) -> bool:
    """Whether the factor is what is made of a number with another one, too."""
    inputs = Inputs({**wrong.inputs.values, name: value}, wrong.inputs.wrt)
    return _is_off_by(wrong, inputs, of(value))


def _as_size(found: float, wrong: Wrong) -> str:
    """Return a factor as what it is of a size of an argument, as "`x.shape[-1] ** 0.5`"; empty where it is none.

    It is one if it moves with that size.
    """
    for name, value in wrong.inputs.values.items():
        if not isinstance(value, Tensor):
            continue
        for said, dim in ((f"{name}.numel()", None), *((f"{name}.shape[{d}]", d) for d in range(value.ndim))):
            # One less of two is one, which tells nothing; of a square nobody knows which dimension is meant.
            cut = max(value.shape, default=0) if dim is None else value.shape[dim]
            if cut < _LEAST or (dim is not None and value.shape.count(cut) > 1):
                continue
            for made, of in _OF_A_SIZE.items():
                if _is_near(found, of(value.numel() if dim is None else cut)):
                    other = narrowed(wrong.inputs, cut, 0, cut - 1)
                    size = int(other.values[name].numel() if dim is None else other.values[name].shape[dim])
                    if quietly(partial(_is_off_by, wrong, other, of(size))):
                        return f"`{made.format(said)}`"
    return ""


def _is_off_by(wrong: Wrong, inputs: Inputs, factor: float) -> bool:
    """Whether the gradient is off by a factor for other arguments."""
    if not can_be_made(wrong.trial.spec.function, inputs):
        return False
    v = like(outputs(wrong.trial.spec.primal(*inputs.args())), wrong.trial.seed)
    other = Wrong(wrong.trial, inputs, wrong.name, v)
    found = factor_of(other.got, other.expected)
    return found is not None and _is_near(found, factor)


def _is_near(found: float, value: float) -> bool:
    return math.isclose(found, value, rel_tol=1e-6)


def zero(wrong: Wrong) -> Reason | None:
    """Whether it is zero where the right one is not."""
    if wrong.got.any() or not wrong.expected.any():
        return None
    return Reason(kind="zero", words="the result is zero in place of a gradient")
