"""The tests of a gradient that differs which ask with another number, flag, mask or size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from inspect import signature
from itertools import chain, product
from typing import Any

import torch
from torch import Tensor

from gradspec.explain._wrong import Wrong, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import Inputs, like, outputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._made_up import can_be_made
from gradspec.laws.tensor.support._reference import reference

#: How much larger the numbers are with which an option is tried again.
_TIMES = (1, 1, 2, 4)


def with_another_option(wrong: Wrong) -> Reason | None:
    """Whether a number or a flag is the cause: right where it changes nothing, or where the flag is the other one.

    Or an argument that may be left out, as a mask or an index of a padding: right with its default.
    """
    return _right_with(wrong, chain(_with_defaults(wrong), with_other_options(wrong.inputs)))


def with_an_open_mask(wrong: Wrong) -> Reason | None:
    """Whether a mask is the cause, by itself or with an option: right where it lets everything pass."""
    return _right_with(wrong, chain(_masks(wrong.inputs), _both(wrong.inputs)))


def _right_with(wrong: Wrong, others: Iterable[tuple[Reason, Inputs]]) -> Reason | None:
    tried = ((why, one) for why, one in others if wrong.holds(one, drawn=True) and moves_as_much(wrong, one))
    return next((why for why, one in tried if _stays(wrong, one)), None)


def _stays(wrong: Wrong, other: Inputs) -> bool:
    """Whether it is right with another option for other numbers too, larger ones among them: an edge is wide there."""
    for draw, times in enumerate(_TIMES):
        inputs = other.redrawn(wrong.trial.seed + 61 + draw, times=times)
        y = quietly(lambda inputs=inputs: outputs(wrong.trial.spec.primal(*inputs.args())))  # type: ignore[misc]
        is_there = y is not None and all(bool(t.isfinite().all()) for t in y if isinstance(t, Tensor))
        if is_there and wrong.holds(inputs, drawn=True) is False:
            return False
    return True


def _with_defaults(wrong: Wrong) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with one that may be left out as its default, None, and what it shows."""
    for name, parameter in signature(wrong.trial.spec.primal).parameters.items():
        value = wrong.inputs.values.get(name)
        if parameter.default is None and value is not None and name not in wrong.inputs.wrt:
            said = f"right where `{name}` is None, as where it is left out, and wrong where it is given"
            reason = Reason(kind="option", words=said, evidence={"argument": name, "value": None})
            yield reason, Inputs({**wrong.inputs.values, name: None}, wrong.inputs.wrt)


def with_other_options(inputs: Inputs) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with another value of one option, and what it shows."""
    for name, value in inputs.values.items():
        for plain in _plainer(value) if isinstance(value, bool | int | float) else ():
            said = f"right where `{name}` is {plain!r}, and wrong where it is {value!r}"
            reason = Reason(kind="option", words=said, evidence={"argument": name, "value": plain})
            yield reason, Inputs({**inputs.values, name: plain}, inputs.wrt)


def _plainer(value: bool | float) -> tuple[bool | float, ...]:
    """Return values of an option that ask for less: one group, no share, a factor of one, a square; a flag the other.

    The first is that which asks for least.
    """
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return tuple(one for one in ((0,) if value == 1 else (1, 2)) if one < value)
    return tuple(one for one in (0.0, 1.0, 2.0) if one != value)


def _masks(inputs: Inputs) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with a mask that lets everything pass, and what it shows."""
    for name, value in inputs.values.items():
        if not isinstance(value, Tensor) or name in inputs.wrt or not value.numel():
            continue
        flat = value.detach()
        if bool(((flat == 0) | (flat == 1)).all()) and bool((flat == 0).any()) and bool((flat == 1).any()):
            for open_ in (1, 0):
                value = bool(open_) if flat.dtype is torch.bool else open_
                said = f"right where `{name}` is {value} everywhere, and wrong where it is not"
                reason = Reason(kind="option", words=said, evidence={"argument": name, "value": value})
                yield reason, Inputs({**inputs.values, name: torch.full_like(flat, open_)}, inputs.wrt)


def _both(inputs: Inputs) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with such a mask and another value of an option, as of a dropout, and what both show."""
    for (mask, masked), (option, other) in product(_masks(inputs), with_other_options(inputs)):
        names = [one.evidence["argument"] for one in (mask, option)]
        said = f"right where `{names[0]}` is {mask.evidence['value']} everywhere and `{names[1]}` is "
        said += f"{option.evidence['value']!r}, and wrong where they are not"
        reason = Reason(kind="option", words=said, evidence={"arguments": names})
        yield reason, Inputs({**masked.values, names[1]: other.values[names[1]]}, inputs.wrt)


def with_an_even_number(wrong: Wrong) -> Reason | None:
    """Whether it is right for even numbers and wrong for odd ones, or the reverse: of an option, or of a dimension."""
    inputs, values = wrong.inputs, wrong.inputs.values
    options = [(f"`{name}`", name, n, partial(_with, inputs, name, n)) for name, n in _numbers(inputs)]
    sizes = [
        (f"the size of dimension {dim} of `{name}`", name, size, partial(grown, inputs, size))
        for name in inputs.wrt
        for dim, size in enumerate(values[name].shape)
    ]
    for said, name, number, more in (*options, *sizes):
        is_it = number > 1 and [wrong.holds(more(k), drawn=True) for k in (1, 2, 3)] == [True, False, True]
        if is_it and moves_as_much(wrong, more(1)):
            right, other = ("even", "odd") if number % 2 else ("odd", "even")
            words = f"right where {said} is {right}, and wrong where it is {other}"
            return Reason(kind="even or odd", words=words, evidence={"argument": name, "right": right})
    return None


def with_a_number_beside(wrong: Wrong) -> Reason | None:
    """Whether it is right where a number is one less, or one more."""
    for name, number in _numbers(wrong.inputs):
        for step in (-1, 1) if abs(number) > 1 else ():
            other = _with(wrong.inputs, name, number, step)
            if wrong.holds(other, drawn=True) and moves_as_much(wrong, other):
                words = f"right where `{name}` is {number + step}, and wrong where it is {number}"
                return Reason(kind="option", words=words, evidence={"argument": name, "value": number + step})
    return None


def _numbers(inputs: Inputs) -> list[tuple[str, int]]:
    return [(name, number) for name, number in inputs.values.items() if type(number) is int]


def _with(inputs: Inputs, name: str, number: int, step: int) -> Inputs:
    return Inputs({**inputs.values, name: number + step}, inputs.wrt)


def grown(inputs: Inputs, size: int, step: int) -> Inputs:
    """Return arguments with more elements along each dimension of a size: the first ones, once more.

    Of dimensions of one element only a batch is more: others are there to be expanded.
    """

    def longer(value: Any) -> Any:
        for dim in range(value.ndim) if isinstance(value, Tensor) else ():
            if value.shape[dim] == size and (size > 1 or (dim == 0 and value.ndim > 1)):
                value = value.index_select(dim, torch.arange(size + step, device=value.device) % size)
        return value.detach() if isinstance(value, Tensor) else value

    return Inputs({name: longer(value) for name, value in inputs.values.items()}, inputs.wrt)


def with_more_of(wrong: Wrong, size: int, step: int) -> Wrong | None:
    """Return the same question with more elements in each dimension of a size; None where that cannot be called."""
    inputs = grown(wrong.inputs, size, step)
    if not can_be_made(wrong.trial.spec.function, inputs):
        return None
    y = outputs(wrong.trial.spec.primal(*inputs.args()))
    more = Wrong(wrong.trial, inputs, wrong.name, like(y, wrong.trial.seed + 51), wrong.found)
    return more.redrawn(wrong.trial.seed + 51, moved=True)


def moves_as_much(wrong: Wrong, other: Inputs) -> bool:
    """Whether the gradient in question is there with another option too: without one there is nothing to be wrong."""
    y = outputs(wrong.trial.spec.primal(*other.args()))
    return bool(some(vjp(reference(wrong.trial.spec), other, like(y, wrong.trial.seed))[wrong.name]).any())
