"""Whether a gradient is the right one times a number: the simplest mistake, which many others look like by chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from gradspec.explain._wrong import Wrong
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
    digits = min(1e-2, max(1e-6, known, 256 * torch.finfo(got.dtype).eps))
    number = what_it_is(found, wrong.inputs, partial(_is_off_by, wrong, digits), digits=digits)
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


def what_it_is(found: float, inputs: Inputs, is_off_by: Callable[[Inputs, float], bool], *, digits: float) -> str:
    """Return a factor as what it is of an argument, "1 / `scale`" or "`x.shape[1] ** 0.5`"; empty where it is nothing.

    It is that if it moves with a number, or with a size.

    Args:
        found: the factor.
        inputs: the arguments of the call.
        is_off_by: whether the gradient is off by a factor for other arguments.
        digits: to which part of it the factor is known.
    """
    for said, value, of, other in chain(_numbers(inputs), _shares(inputs), _sizes(inputs)):
        if math.isclose(found, of(value), rel_tol=digits):
            moved, elsewhere = other()
            if quietly(lambda: is_off_by(moved, of(elsewhere))):  # noqa: B023  # called at once
                return said
    return ""


#: What a factor may be: in words, the number, what is made of it, and the arguments with another one.
_Candidate = tuple[str, float, Callable[[Any], Any], Callable[[], tuple[Inputs, float]]]


def _numbers(inputs: Inputs) -> Iterator[_Candidate]:
    """Yield what may be made of the numbers that a call is given."""
    for name, value in inputs.values.items():
        if type(value) is float and value not in (0.0, 1.0, -1.0):
            other = Inputs({**inputs.values, name: _ELSEWHERE * value}, inputs.wrt), _ELSEWHERE * value
            yield from ((made.format(f"`{name}`"), value, of, lambda other=other: other) for made, of in MADE.items())


def _sizes(inputs: Inputs) -> Iterator[_Candidate]:
    """Yield what may be made of the sizes of its tensors; the other arguments have one element less along one."""

    def fewer(name: str, size: int, dim: int | None) -> tuple[Inputs, float]:
        part = inputs.narrowed(size=size, length=size - 1)
        return part, _count(part.values[name], dim)

    for name, value in inputs.values.items():
        for dim in (None, *range(value.ndim)) if isinstance(value, Tensor) and value.ndim else ():
            # One less of two is one, which tells nothing; of a square nobody knows which dimension is meant.
            size = max(value.shape) if dim is None else value.shape[dim]
            if size < _LEAST or (dim is not None and value.shape.count(size) > 1):
                continue
            said, other = f"{name}.numel()" if dim is None else f"{name}.shape[{dim}]", partial(fewer, name, size, dim)
            yield from ((f"`{made.format(said)}`", _count(value, dim), of, other) for made, of in _OF_A_SIZE.items())


def _shares(inputs: Inputs) -> Iterator[_Candidate]:
    """Yield how much of a mask is set, and of an index is not the number that is ignored; then one element less is."""

    def fewer(name: str, value: Tensor, chosen: Tensor, ignored: int) -> tuple[Inputs, float]:
        first = int(chosen.flatten().nonzero()[0])
        part = value.flatten().clone()
        part[first] = ignored
        share = (int(chosen.sum()) - 1) / chosen.numel()
        return Inputs({**inputs.values, name: part.view_as(value)}, inputs.wrt), share

    numbers = {name: value for name, value in inputs.values.items() if type(value) is int}
    for name, value in inputs.values.items():
        if not isinstance(value, Tensor) or value.is_complex():
            continue
        masks = {f"{name}.float().mean()": 0} if bool(((value == 0) | (value == 1)).all()) else {}
        if not value.is_floating_point() and value.dtype != torch.bool:
            masks |= {f"({name} != {number}).float().mean()": ignored for number, ignored in numbers.items()}
        for said, ignored in masks.items():
            chosen = value != ignored
            if _LEAST <= int(chosen.sum()) < chosen.numel():
                share, other = float(chosen.double().mean()), partial(fewer, name, value, chosen, ignored)
                yield f"`{said}`", share, _OF_A_SIZE["{}"], other
                yield f"`1 / {said}`", share, _OF_A_SIZE["1 / {}"], other


def _count(value: Tensor, dim: int | None) -> int:
    return value.numel() if dim is None else value.shape[dim]


def _is_off_by(wrong: Wrong, digits: float, inputs: Inputs, factor: float) -> bool:
    """Whether the gradient is off by a factor for other arguments."""
    if not can_be_made(wrong.trial.spec.function, inputs):
        return False
    v = like(outputs(wrong.trial.spec.primal(*inputs.args())), wrong.trial.seed)
    other = Wrong(wrong.trial, inputs, wrong.name, v)
    found = factor_of(other.got, other.expected)
    return found is not None and math.isclose(found, factor, rel_tol=digits)


def zero(wrong: Wrong) -> Reason | None:
    """Whether it is zero where the right one is not."""
    if wrong.got.any() or not wrong.expected.any():
        return None
    return Reason(kind="zero", words="the result is zero in place of a gradient")
