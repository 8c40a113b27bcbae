"""The tests of a gradient that differs which call with other arguments, each with what it then says."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.explain._options import moves_as_much
from gradspec.explain._repeated import ASSIGNED, SHARED, last_of_each, masked_rows
from gradspec.explain._wrong import Wrong, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import Inputs, differentiable, like, outputs, vjp
from gradspec.laws.tensor.support._made_up import can_be_made
from gradspec.laws.tensor.support._reference import reference

#: How far aside a point is moved, in parts of its largest element, to leave a kink behind.
ASIDE = 1e-3
#: How near a number is that is not wrong, in any dtype.
_NEAR = 1e-2
#: Of how many elements of a dimension each is tried by itself.
_ELEMENTS = 16


def beside_a_kink(wrong: Wrong) -> Reason | None:
    """Whether it is wrong at this point only, as at a kink, or where a divisor is zero."""
    if not all(wrong.is_right(_aside(wrong.inputs, seed)) for seed in range(3)):
        return None
    is_nan = "0/0 or 0 * inf" if not bool(wrong.got.isfinite().all()) else "wrong at this point alone"
    return Reason(kind="kink", words=f"{is_nan} ({_what_meets(wrong)}): right a little aside of this `{wrong.name}`")


def _what_meets(wrong: Wrong) -> str:
    """Say which elements have to be moved aside for it to be right: those that are 0, or those that tie."""
    value = wrong.inputs.values[wrong.name].detach()
    flat = value.flatten().tolist()
    ties = torch.tensor([flat.count(number) > 1 for number in flat], device=value.device).view(value.shape)
    aside = _aside(wrong.inputs, 0).values[wrong.name]
    for what, there in (("an element of it is 0", value == 0), ("its elements tie", ties)):
        if bool(there.any()):
            moved = {wrong.name: torch.where(there, aside, value)}
            if wrong.is_right(Inputs({**wrong.inputs.values, **moved}, wrong.inputs.wrt)):
                return what
    return "a bound, or arguments that meet"


def with_a_negative_number(wrong: Wrong) -> Reason | None:
    """Whether a number that counts from the end is the cause."""
    return next((said for said, counted in counted_from_the_front(wrong.inputs) if wrong.is_right(counted)), None)


def counted_from_the_front(inputs: Inputs) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with a negative number, as of a dimension, counted from the front, and what it shows."""
    ndim = max((value.ndim for value in inputs.values.values() if isinstance(value, Tensor)), default=0)
    for name, value in inputs.values.items():
        if type(value) is int and -ndim <= value < 0:
            said = f"right with {name}={value + ndim} in place of {name}={value}: a negative number is miscounted"
            reason = Reason(kind="negative number", words=said, evidence={"argument": name})
            yield reason, Inputs({**inputs.values, name: value + ndim}, inputs.wrt)


def without_negative_indices(inputs: Inputs) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with 0 for each negative number of an index, and what it shows."""
    for name, value in inputs.values.items():
        if (
            isinstance(value, Tensor)
            and not differentiable(value)
            and value.dtype is not torch.bool
            and (value < 0).any()
        ):
            said = f"right where no number of `{name}` is negative: backward lacks the mask of what it stands for"
            reason = Reason(kind="negative index", words=said, evidence={"argument": name})
            yield reason, Inputs({**inputs.values, name: value.clamp(min=0)}, inputs.wrt)


def with_a_negative_index(wrong: Wrong) -> Reason | None:
    """Whether what a negative number of an index stands for, as padding, is the cause."""
    is_right = torch.isclose(wrong.got, wrong.expected, rtol=_NEAR, atol=0.0) & (wrong.expected != 0)
    if not bool(is_right.any()):
        return None  # a divisor counts the padding, and no mask is missing
    found = without_negative_indices(wrong.inputs)
    return next((said for said, others in found if wrong.holds(others)), None)


def without_empty_groups(inputs: Inputs) -> Iterator[tuple[Reason, Inputs]]:
    """Yield the arguments with an index into groups of which none is empty, and what it shows."""
    for name, value in inputs.values.items():
        if not isinstance(value, Tensor) or value.dtype not in (torch.int32, torch.int64) or not value.numel():
            continue
        if bool((value < 0).any()):
            continue
        groups = sorted(set(value.flatten().tolist()))
        dense = torch.searchsorted(torch.tensor(groups, device=value.device), value)
        for other, size in inputs.values.items():
            if type(size) is int and len(groups) < size and groups[-1] < size:
                said = f"right where `{name}` has every number below `{other}`: an empty group has no gradient to give"
                reason = Reason(kind="empty group", words=said, evidence={"argument": name, "groups": other})
                full = {name: dense.to(value.dtype), other: len(groups)}
                yield reason, Inputs({**inputs.values, **full}, inputs.wrt)


def with_no_empty_group(wrong: Wrong) -> Reason | None:
    """Whether a group without an element is the cause: of groups that a dimension of an output counts."""
    shapes = [t.shape for t in wrong.v]
    for said, others in without_empty_groups(wrong.inputs):
        if wrong.holds(others, drawn=True):
            y = outputs(wrong.trial.spec.primal(*others.args()))
            if [t.shape for t in y] != shapes:
                return said
    return None


def with_an_index_that_repeats(wrong: Wrong) -> Reason | None:
    """Whether a repeated index is the cause."""
    for name, value in wrong.inputs.values.items():
        if not isinstance(value, Tensor) or differentiable(value) or value.dtype == torch.bool or not _repeats(value):
            continue
        row = value[:1]
        once, twice = (Inputs({**wrong.inputs.values, name: t}, wrong.inputs.wrt) for t in (row, torch.cat((row, row))))
        is_cause = _is_right_where_none_repeats(wrong, name, value) or (
            not _repeats(row) and wrong.holds(once, drawn=True) and wrong.holds(twice, drawn=True) is False
        )
        if is_cause:
            alone = tuple(masked_rows(t, [last_of_each(value)]) for t in wrong.v)
            is_assigned = any(a is not b for a, b in zip(alone, wrong.v, strict=True)) and wrong.is_right(
                wrong.inputs, alone
            )
            said = f"right where no index in `{name}` repeats: {ASSIGNED if is_assigned else SHARED}"
            return Reason(kind="repeated index", words=said, evidence={"argument": name})
    return None


def with_a_sorted_index(wrong: Wrong) -> Reason | None:
    """Whether an index has to be sorted: of the same numbers in order it is right, and turned round it is wrong."""
    for name, value in wrong.inputs.values.items():
        if not isinstance(value, Tensor) or value.ndim != 1 or value.dtype not in (torch.int32, torch.int64):
            continue
        in_order = value.sort().values
        if torch.equal(in_order, value) or torch.equal(in_order, in_order.flip(0)):
            continue
        right, turned = (
            Inputs({**wrong.inputs.values, name: t}, wrong.inputs.wrt) for t in (in_order, in_order.flip(0))
        )
        if wrong.holds(right, drawn=True) and wrong.holds(turned, drawn=True) is False:
            said = f"right where `{name}` is sorted, and wrong where it is not"
            return Reason(kind="unsorted index", words=said, evidence={"argument": name})
    return None


def _is_right_where_none_repeats(wrong: Wrong, name: str, value: Tensor) -> bool:
    """Whether it is right for the first indices and for those at hand, each once, and wrong where one of them repeats.

    Of others nobody knows whether it is that index that is wrong.
    """
    given = value.flatten().tolist()
    known = list(dict.fromkeys(given))
    rest = [index for index in range(max(len(given), *given) + 1) if index not in known]
    once = [*known, *rest][: len(given)]

    def holds(indices: list[int]) -> bool | None:
        other = torch.tensor(indices, dtype=value.dtype, device=value.device).view(value.shape)
        return wrong.holds(Inputs({**wrong.inputs.values, name: other}, wrong.inputs.wrt))

    repeated = [once[-1], *once[1:]]
    return bool(holds([*range(len(given))])) and holds(once) is not False and holds(repeated) is not True


def with_a_symmetric_argument(wrong: Wrong) -> Reason | None:
    """Whether a transpose is missing within."""
    for name in wrong.inputs.wrt:
        value = wrong.inputs.values[name].detach()
        if value.ndim < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] == 1:
            continue
        symmetric = Inputs({**wrong.inputs.values, name: (value + value.mH) / 2}, wrong.inputs.wrt)
        if wrong.is_right(symmetric):
            how, other = ("Hermitian", "adjoint") if value.is_complex() else ("symmetric", "transpose")
            said = f"right where `{name}` is {how}: backward takes it where its {other} is meant, or the reverse"
            return Reason(kind="transposed argument", words=said, evidence={"argument": name})
    return None


def in_contiguous_memory(wrong: Wrong) -> Reason | None:
    """Whether the strides of the arguments are the cause."""
    given = {n: t.detach() for n, t in wrong.inputs.values.items() if isinstance(t, Tensor)}
    laid = {name: value.contiguous() for name, value in given.items() if not value.is_contiguous()}
    if laid and wrong.is_right(Inputs({**wrong.inputs.values, **laid}, wrong.inputs.wrt)):
        named = " and ".join(f"`{name}`" for name in laid)
        said = f"right where {named} is contiguous: reshape() or flatten() makes a copy of it else, and a write is lost"
        return Reason(kind="strides", words=said, evidence={"arguments": sorted(laid)})
    return None


def along_which_it_is_the_same(wrong: Wrong) -> Reason | None:
    """Whether it is right where an argument that is not differentiated has one slice all along a dimension, any of it.

    Not where each slice is one number: an index or a mask then names one thing, or nothing.
    """
    for name, value in wrong.inputs.values.items():
        if not isinstance(value, Tensor) or name in wrong.inputs.wrt:
            continue
        for dim in range(value.ndim):
            slices = [value.select(dim, k) for k in range(min(value.shape[dim], _ELEMENTS))]
            if all(torch.equal(one, slices[0]) for one in slices) or all(
                torch.unique(one).numel() < 2 for one in slices
            ):
                continue
            alike = (one.unsqueeze(dim).expand(value.shape).clone() for one in slices)
            others = [Inputs({**wrong.inputs.values, name: one}, wrong.inputs.wrt) for one in alike]
            if all(wrong.holds(one) for one in others) and moves_as_much(wrong, others[0]):
                said = f"right where `{name}` is the same all along dimension {dim}, and wrong where it is not"
                return Reason(kind="one slice", words=said, evidence={"argument": name, "dim": dim})
    return None


def with_one_sample(wrong: Wrong) -> Reason | None:
    """Whether the samples of a batch are mixed."""
    size = wrong.v[0].shape[0]
    if size < 2 or any(t.ndim == 0 or t.shape[0] != size for t in wrong.v):
        return None

    def first(value: object) -> object:
        return value[:1] if isinstance(value, Tensor) and value.ndim and value.shape[0] == size else value

    alone = Inputs({name: first(value) for name, value in wrong.inputs.values.items()}, wrong.inputs.wrt)
    if not can_be_made(wrong.trial.spec.function, alone):
        return None
    if not wrong.is_right(alone, tuple(t[:1] for t in wrong.v)) or not _mixes(wrong):
        return None
    said = "right where dimension 0 has one element: backward mixes its elements, as a sum over it or a broadcast does"
    return Reason(kind="mixed samples", words=said)


def with_one_element(wrong: Wrong) -> Reason | None:
    """Whether a dimension other than the first is mixed: whether all is right where it has one element."""
    value = wrong.inputs.values[wrong.name]
    for dim, size in enumerate(value.shape):
        if size < 2 or value.shape.count(size) > 1:
            continue  # of a square nobody knows which of its dimensions another argument shares
        other = wrong.inputs.narrowed(size=size, length=1)
        # One number shows little: it is asked with the other sign, and where no clip clips; and of each element.
        each = (wrong.inputs.narrowed(size=size, length=1, start=place) for place in range(min(size, _ELEMENTS)))
        is_right = all(wrong.holds(other, drawn=True, times=times) for times in (1, -1, 1e-2))
        if is_right and all(wrong.holds(one, drawn=True) for one in each) and moves_as_much(wrong, other):
            said = f"right where dimension {dim} of `{wrong.name}` has one element, and wrong where it has {size}"
            return Reason(kind="one element", words=said, evidence={"argument": wrong.name, "dim": dim})
    return None


def _mixes(wrong: Wrong) -> bool:
    """Whether the gradient of the first sample moves with other cotangents, where the right one does not."""
    alone = tuple(t.clone() for t in wrong.v)
    for t in alone:
        t[1:] = 0
    of_function = some(vjp(wrong.trial.spec.function, wrong.inputs, alone)[wrong.name])
    of_reference = some(vjp(reference(wrong.trial.spec), wrong.inputs, alone)[wrong.name])
    return not wrong.same(of_function[:1], wrong.got[:1]) and wrong.same(of_reference[:1], wrong.expected[:1])


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
