"""Whether a gradient is the right one times a number: the simplest mistake, which many others look like by chance."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._guess import factor_reason

#: By what a number is multiplied to see whether a factor moves with it.
_ELSEWHERE = 1.25
#: What may be made of a number, or of a tensor, by mistake, or left out.
MADE: dict[str, Callable[[Any], Any]] = {
    "{}": lambda value: value,
    "1 / {}": lambda value: 1 / value,
    "{} squared": lambda value: value**2,
    "1 / {} squared": lambda value: value**-2,
    "1 - {}": lambda value: 1 - value,
    "1 / (1 - {})": lambda value: 1 / (1 - value),
}


def factor(wrong: Wrong) -> Reason | None:
    """Whether it is the right one times a number."""
    got, expected = wrong.got, wrong.expected
    if (found := factor_of(got, expected)) is None:
        return None
    number = _as_argument(found, wrong)
    return factor_reason(found, is_everywhere=bool((expected != 0).all()), of=number)


def factor_of(got: Tensor, expected: Tensor, *, tells_one: bool = True) -> float | None:
    """Return by which real factor a tensor is off; None where there is no such factor.

    Where the right one is zero, the wrong one must be, too.

    Args:
        got: the tensor.
        expected: what it is compared with.
        tells_one: ask for more digits than tell the factor from 1.
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
    digits = max(1e-7, 64 * torch.finfo(got.dtype).eps)
    digits = min(digits, abs(number.real - 1) / 100) if tells_one else digits
    off = (mine - number.real * theirs).abs()
    is_it = bool((off <= digits * abs(number.real) * theirs.abs()).all()) and not bool(got[~there].any())
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
    other = Wrong(wrong.trial, inputs, wrong.name, wrong.v)
    found = factor_of(other.got, other.expected)
    return found is not None and _is_near(found, of(value))


def _is_near(found: float, value: float) -> bool:
    return math.isclose(found, value, rel_tol=1e-6)


def zero(wrong: Wrong) -> Reason | None:
    """Whether it is zero where the right one is not."""
    if wrong.got.any() or not wrong.expected.any():
        return None
    return Reason(kind="zero", words="the result is zero in place of a gradient")
