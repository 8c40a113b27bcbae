"""Whether each element of a gradient is off by a factor of its own: a count, an argument, a norm or a sum."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradspec.explain._factor import MADE, factor_of
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason

#: How many of the factors of the rows are printed.
_PRINTED = 6


def of_a_count(wrong: Wrong) -> Reason | None:
    """Whether each row is off by how often its number occurs in an index, as where a mean is taken for a sum."""
    for name, index in _integers(wrong):
        _, inverse, counts = torch.unique(index, return_inverse=True, return_counts=True)
        if (count := _beside(counts[inverse], wrong.got)) is None or bool((count == count.flatten()[0]).all()):
            continue
        if wrong.same(wrong.got, wrong.expected * count):
            said = f"as many times the right one as its number occurs in `{name}`: divide by the count"
        elif wrong.same(wrong.got * count, wrong.expected):
            said = f"the right one divided by how often its number occurs in `{name}`: do not divide by the count"
        else:
            continue
        return Reason(kind="own factor", words=f"each row is {said}", evidence={"count of": name})
    return None


def of_each_element(wrong: Wrong) -> Reason | None:
    """Whether each element is the right one times a number of an argument or an output, or times a norm or a sum."""
    got, expected = wrong.got, wrong.expected
    there = expected != 0
    if got.shape != expected.shape or not got.is_floating_point() or bool(got[~there].any()) or not bool(there.any()):
        return None
    for name, factor in _known(wrong):
        if bool((factor == factor.flatten()[0]).all()) or bool((factor == 0).any()):
            continue
        for made, of in MADE.items():
            if wrong.same(got, expected * of(factor)):
                what = made.format(name)
                said = f"each element is {what} times the right one"
                return Reason(kind="own factor", words=said, evidence={"factor": what})
    return None


def of_each_row(wrong: Wrong) -> Reason | None:
    """Whether each row of a dimension is the right one times a number."""
    got, expected = wrong.got, wrong.expected
    for dim in range(got.ndim) if got.shape == expected.shape else ():
        rows = [(got.select(dim, k), expected.select(dim, k)) for k in range(got.shape[dim])]
        asked = [(mine, theirs) for mine, theirs in rows if bool(mine.any()) or bool(theirs.any())]
        if any(int((theirs != 0).sum()) < 2 for _, theirs in asked):
            continue  # a number is the multiple of any other
        factors = [factor_of(mine, theirs, tells_one=False) for mine, theirs in asked]
        found = [f for f in factors if f is not None]
        if len(found) == len(factors) and len({f"{f:.6g}" for f in found} - {"1"}) > 1:
            more = ", ..." if len(found) > _PRINTED else ""
            listed = ", ".join(f"{f:.3g}" for f in found[:_PRINTED])
            said = f"each row of dimension {dim} is off by a factor of its own: {listed}{more}"
            return Reason(kind="own factor", words=said, evidence={"dimension": dim})
    return None


def _known(wrong: Wrong) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors that fit beside the gradient, and their norms and sums, with their names."""
    numbers = [(f"`{name}`", t.to(wrong.got.dtype)) for name, t in _integers(wrong)]
    for name, value in (*wrong.values.items(), *numbers):
        if (fitting := _beside(value, wrong.got)) is not None:
            yield name, fitting
    for name, value in wrong.values.items():
        if value.shape != wrong.got.shape or not value.is_floating_point():
            continue
        for dim in range(value.ndim):
            yield f"the norm of {name} along dimension {dim}", value.norm(dim=dim, keepdim=True)
            yield f"the sum of {name} along dimension {dim}", value.sum(dim, keepdim=True)


def _integers(wrong: Wrong) -> Iterator[tuple[str, Tensor]]:
    for name, value in wrong.inputs.values.items():
        if isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.numel():
            yield name, value


def _beside(value: Tensor, gradient: Tensor) -> Tensor | None:
    """Return a tensor in a shape in which it multiplies a gradient; None where it fits beside no dimension."""
    for start in range(gradient.ndim - value.ndim + 1) if value.ndim else ():
        if gradient.shape[start : start + value.ndim] == value.shape:
            rest = gradient.ndim - start - value.ndim
            return value.reshape(*(1,) * start, *value.shape, *(1,) * rest)
    return None
