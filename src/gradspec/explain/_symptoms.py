"""The tests of a gradient that differs which look for its numbers in another place, each with what it then says."""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.explain._where_wrong import by_bound, by_value, in_places, masked
from gradspec.explain._wrong import Wrong, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import Inputs, outputs, vjp
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._guess import narrow
from gradspec.laws.tensor.support._reference import is_stand_in, reference
from gradspec.spec._gradient import gradient_of

#: Under which name it is noted which bound was named.
_BOUND = "bound"


def of_forward(wrong: Wrong) -> Reason | None:
    """Whether it is the derivative of forward."""
    if is_stand_in(wrong.trial.spec.primal):
        return None  # the function itself, whose derivative is what its backward says
    plain = vjp(wrong.trial.spec.primal, wrong.inputs, wrong.v)[wrong.name]
    is_it = plain is not None and wrong.same(wrong.got, plain)
    other = (
        "the spec declares another" if gradient_of(wrong.trial.spec.surrogate) else "the spec's surrogate has another"
    )
    said = f"it is the derivative of forward, where {other}"
    return Reason(kind="of forward", words=said) if is_it else None


def of_narrow_numbers(wrong: Wrong) -> Reason | None:
    """Whether its numbers are those of a narrower type."""
    return narrow(wrong.got, wrong.expected)


def exchanged(wrong: Wrong) -> Reason | None:
    """Whether two gradients are in each other's place."""
    mine = wrong.name
    for other in wrong.inputs.wrt:
        theirs, their_right = wrong.given[other], wrong.right[other]
        if other == mine or theirs is None or their_right is None or theirs.shape != wrong.got.shape:
            continue
        if wrong.same(wrong.got, their_right) and wrong.same(theirs, wrong.expected):
            said = f"backward returns the gradients of `{mine}` and `{other}` in each other's place: mind the order"
            return Reason(kind="exchanged", words=said, evidence={"arguments": sorted((mine, other))})
    return None


def transposed(wrong: Wrong) -> Reason | None:
    """Whether it is the transpose."""
    is_it = wrong.got.ndim >= 2 and wrong.same(wrong.got, wrong.expected.mT)
    return Reason(kind="transposed", words="it is the transpose of the right gradient") if is_it else None


def at_the_output(wrong: Wrong) -> Reason | None:
    """Whether it is the derivative at another point."""
    (y, *_) = outputs(wrong.trial.spec.primal(*wrong.inputs.args()))
    value = wrong.inputs.values[wrong.name]
    if describe(y) != describe(value):
        return None
    off = ~torch.isclose(wrong.got, wrong.expected)
    if not bool(wrong.expected[off].any()):
        return None  # a mask is missing: what is clipped lies on the bound

    def is_that_at(point: Tensor) -> bool:
        there = Inputs({**wrong.inputs.values, wrong.name: point}, wrong.inputs.wrt)
        return wrong.same(wrong.got, some(vjp(reference(wrong.trial.spec), there, wrong.v)[wrong.name]))

    # A derivative that is the same elsewhere says nothing of the point.
    is_it = is_that_at(y) and not is_that_at(y / 3)
    said = f"it is the derivative at the output: the output is kept where `{wrong.name}` is meant"
    return Reason(kind="at the output", words=said) if is_it else None


def of_a_part(wrong: Wrong) -> Reason | None:
    """Whether it comes from one sample only."""
    for place, which in ((0, "first"), (-1, "last")):
        part = tuple(torch.zeros_like(t) for t in wrong.v)
        for t, whole in zip(part, wrong.v, strict=True):
            t[place] = whole[place]
        alone = vjp(reference(wrong.trial.spec), wrong.inputs, part)[wrong.name]
        if wrong.same(wrong.got, some(alone)):
            said = f"it is the gradient of the {which} sample of the batch alone: sum over the batch"
            return Reason(kind="one sample", words=said, evidence={"sample": which})
    return None


def in_some_places(wrong: Wrong) -> Reason | None:
    """Where it is wrong."""
    if (block := in_places(wrong.got, wrong.expected)) is not None:
        return block
    return next(by_value(wrong.got, wrong.expected, wrong.inputs.values), None)


def beyond_a_bound(wrong: Wrong) -> Reason | None:
    """Whether it is wrong on one side of a bound, which stays where it is for larger arguments."""
    known: Reason | None = wrong.found.get(_BOUND)
    for one in by_bound(wrong.got, wrong.expected, wrong.inputs.values):
        if known is None:
            larger = wrong.redrawn(wrong.trial.seed + 41, moved=True, times=2)
            others = by_bound(larger.got, larger.expected, larger.inputs.values)
            if any(_is_of_one_range(one, other) for other in others):
                return wrong.found.setdefault(_BOUND, one)  # type: ignore[no-any-return]  # what was put there
        elif _is_of_one_range(known, one):
            return known
    return None


def _is_of_one_range(known: Reason, other: Reason) -> bool:
    """Whether two bounds may be the same number."""
    (low, high), (lower, higher) = (one.evidence["between"] for one in (known, other))
    named = [(one.evidence["argument"], one.evidence["where"]) for one in (known, other)]
    return named[0] == named[1] and max(low, lower) <= min(high, higher)


def of_a_mask(wrong: Wrong) -> Reason | None:
    """Whether a mask is missing, or shuts too much."""
    return masked(wrong.got, wrong.expected)
