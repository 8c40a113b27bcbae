"""The tests of a gradient that differs which call with other arguments, each with what it then says."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable, like
from gradspec.laws.tensor.support._wrong import Wrong

#: How far aside a point is moved, in parts of its largest element, to leave a kink behind.
ASIDE = 1e-3


def beside_a_kink(wrong: Wrong) -> str:
    """Whether it is wrong at a kink only."""
    if not all(wrong.is_right(_aside(wrong.inputs, seed)) for seed in range(3)):
        return ""
    value = wrong.inputs.values[wrong.name]
    why = "its elements tie" if _repeats(value) else "a bound, a zero, or arguments that meet"
    is_nan = "0/0 or 0 * inf at a kink" if not bool(wrong.got.isfinite().all()) else "wrong at a kink alone"
    return f"{is_nan} ({why}): right a little aside of this `{wrong.name}`"


def with_a_negative_number(wrong: Wrong) -> str:
    """Whether a number that counts from the end is the cause."""
    return next((said for said, counted in counted_from_the_front(wrong.inputs) if wrong.is_right(counted)), "")


def counted_from_the_front(inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield the arguments with a negative number, as of a dimension, counted from the front, and what it shows."""
    ndim = max((value.ndim for value in inputs.values.values() if isinstance(value, Tensor)), default=0)
    for name, value in inputs.values.items():
        if type(value) is int and -ndim <= value < 0:
            said = f"right with {name}={value + ndim} in place of {name}={value}: a negative number is miscounted"
            yield said, Inputs({**inputs.values, name: value + ndim}, inputs.wrt)


def with_an_index_that_repeats(wrong: Wrong) -> str:
    """Whether a repeated index is the cause."""
    for name, value in wrong.inputs.values.items():
        if not isinstance(value, Tensor) or differentiable(value) or value.dtype == torch.bool or not _repeats(value):
            continue
        distinct = torch.arange(value.numel(), dtype=value.dtype, device=value.device).reshape(value.shape)
        row = value[:1]
        once, twice = (Inputs({**wrong.inputs.values, name: t}, wrong.inputs.wrt) for t in (row, torch.cat((row, row))))
        is_cause = wrong.holds(Inputs({**wrong.inputs.values, name: distinct}, wrong.inputs.wrt)) or (
            not _repeats(row) and wrong.holds(once, drawn=True) and wrong.holds(twice, drawn=True) is False
        )
        if is_cause:
            return f"right where no index in `{name}` repeats: x[i] += ... keeps one of them, index_add_ adds them all"
    return ""


def with_a_symmetric_argument(wrong: Wrong) -> str:
    """Whether a transpose is missing within."""
    for name in wrong.inputs.wrt:
        value = wrong.inputs.values[name].detach()
        if value.ndim < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] == 1:
            continue
        symmetric = Inputs({**wrong.inputs.values, name: (value + value.mT) / 2}, wrong.inputs.wrt)
        if wrong.is_right(symmetric):
            return f"right where `{name}` is symmetric: backward takes it where its transpose is meant, or the reverse"
    return ""


def in_contiguous_memory(wrong: Wrong) -> str:
    """Whether the strides of the arguments are the cause."""
    given = {n: t.detach() for n, t in wrong.inputs.values.items() if isinstance(t, Tensor)}
    laid = {name: value.contiguous() for name, value in given.items() if not value.is_contiguous()}
    if laid and wrong.is_right(Inputs({**wrong.inputs.values, **laid}, wrong.inputs.wrt)):
        named = " and ".join(f"`{name}`" for name in laid)
        return f"right where {named} is contiguous: reshape() or flatten() makes a copy of it else, and a write is lost"
    return ""


def with_one_sample(wrong: Wrong) -> str:
    """Whether the samples of a batch are mixed."""
    size = wrong.v[0].shape[0]
    if size < 2 or any(t.ndim == 0 or t.shape[0] != size for t in wrong.v):
        return ""

    def first(value: object) -> object:
        return value[:1] if isinstance(value, Tensor) and value.ndim and value.shape[0] == size else value

    alone = Inputs({name: first(value) for name, value in wrong.inputs.values.items()}, wrong.inputs.wrt)
    if wrong.is_right(alone, tuple(t[:1] for t in wrong.v)):
        return (
            "right where dimension 0 has one element: backward mixes its elements, by a sum or a mean over the batch, "
            "or leaves out what leads from one to the next"
        )
    return ""


def _aside(inputs: Inputs, seed: int) -> Inputs:
    """Return the arguments, each of its elements moved a little: ties and zeros end, and the neighbourhood stays."""
    moved = dict(inputs.values)
    for name, noise in zip(inputs.wrt, like(inputs.tensors(), seed + 1), strict=True):
        value = moved[name]
        size = float(value.detach().abs().max()) if value.numel() else 0.0
        moved[name] = value.detach() + noise * (ASIDE / 9 * (size or 1.0))
    return Inputs(moved, inputs.wrt)


def _repeats(tensor: Tensor) -> bool:
    return len(set(tensor.flatten().tolist())) < tensor.numel()
