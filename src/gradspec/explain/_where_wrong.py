"""Explain a gradient that is wrong only in some places, by what those places have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, isclose

from gradspec.explain._factor import factor_of
from gradspec.law import Reason

#: The ranges of numbers in which a formula may have a branch of its own.
_RANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "negative": lambda x: x < 0,
    "positive": lambda x: x > 0,
    "0": lambda x: x == 0,
    "outside of -1 to 1": lambda x: x.abs() > 1,
    "inside of -1 to 1": lambda x: x.abs() < 1,
}


#: Of how many numbers a bound is told.
_FEWEST = 6


def in_places(got: Tensor, expected: Tensor) -> Reason | None:
    """Say at which places of a dimension a gradient is wrong, where it is right at all others."""
    if (block := _block(~_close(got, expected))) is None:
        return None
    dim, places, at = block
    there = torch.tensor(places, device=got.device)
    factor = factor_of(got.index_select(dim, there), expected.index_select(dim, there))
    off = "wrong"
    if factor is not None:
        off = "of the wrong sign" if math.isclose(factor, -1) else f"off by the factor {factor:.3g}"
    evidence = {"dimension": dim, "places": places} | ({} if factor is None else {"factor": factor})
    return Reason(kind="places", words=f"{off} {at}, right elsewhere", evidence=evidence)


def _block(off: Tensor) -> tuple[int, list[int], str] | None:
    """Return the dimension and the places of it at which all is wrong, and nothing elsewhere, and both in words."""
    found = []
    for dim, size in enumerate(off.shape):
        rows = off.movedim(dim, 0).reshape(size, -1)
        places = [k for k in range(size) if bool(rows[k].any())]
        # Whole rows, and of more than one element: a single wrong element lies in some row of each dimension.
        if 0 < len(places) < size and rows.shape[1] > 1 and bool(rows[places].all()):
            found.append((len(places) / size, dim, size, places))
    if not found:
        return None
    _, dim, size, places = min(found)
    return dim, places, at_places(places, dim, size)


def at_places(places: Sequence[int], dim: int, size: int) -> str:
    """Return some places of a dimension in words."""
    which = "index" if len(places) == 1 else "indices"
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    told = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"at {which} {', '.join(told)} of dimension {dim} (of {size})"


def masked(got: Tensor, expected: Tensor) -> Reason | None:
    """Say whether a gradient is wrong just where the right one is zero, or just where it is zero itself."""
    close = _close(got, expected)
    off = ~close
    if not bool(off.any()):
        return None
    if bool((expected[off] == 0).all()) and bool((close & (expected != 0)).any()):
        said = "right but where the gradient should be 0: a mask is missing in backward, as of a clip or an index"
        return Reason(kind="missing mask", words=said)
    if bool((got[off] == 0).all()) and bool((close & (got != 0)).any()):
        block = _block(off)
        where = "in places" if block is None else block[-1]
        said = f"0 {where} where the gradient should not be, right elsewhere: a mask shuts too much, or a part is lost"
        return Reason(kind="mask", words=said)
    return None


def by_value(got: Tensor, expected: Tensor, values: Mapping[str, object]) -> Iterator[Reason]:
    """Yield for which numbers of an argument a gradient of its shape is wrong, where it is right for all others."""
    for name, value, off in _of_its_shape(got, expected, values):
        for what, there in _RANGES.items():
            if torch.equal(there(value), off) and not bool(off.all()):
                said = f"wrong where `{name}` is {what}, right elsewhere"
                yield Reason(kind="range", words=said, evidence={"argument": name, "where": what})


def by_bound(got: Tensor, expected: Tensor, values: Mapping[str, object]) -> Iterator[Reason]:
    """Yield above or below which number of an argument a gradient of its shape is wrong, and right elsewhere."""
    for name, value, off in _of_its_shape(got, expected, values):
        if (found := _beyond(value, off)) is not None:
            side, low, high = found
            said = f"wrong where `{name}` is {side} a bound between {low:.4g} and {high:.4g}, right elsewhere"
            yield Reason(kind="range", words=said, evidence={"argument": name, "where": side, "between": [low, high]})


def _of_its_shape(got: Tensor, expected: Tensor, values: Mapping[str, object]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the arguments of the shape of a gradient: where it can be told, their numbers and whether it is wrong."""
    off = ~_close(got, expected)
    told = off | (got != 0) | (expected != 0)  # where both are zero, either answer is right
    for name, value in values.items() if bool(off.any()) else ():
        if isinstance(value, Tensor) and value.shape == off.shape and value.is_floating_point():
            yield name, value.detach()[told], off[told]


def _beyond(value: Tensor, off: Tensor) -> tuple[str, float, float] | None:
    """Return on which side of a bound a gradient is wrong, and the numbers beside that bound; None if there is none."""
    wrong, right = value[off], value[~off]
    if not wrong.numel() or not right.numel() or off.numel() < _FEWEST:
        return None
    if float(wrong.max()) < float(right.min()):
        return "below", float(wrong.max()), float(right.min())
    if float(wrong.min()) > float(right.max()):
        return "above", float(right.max()), float(wrong.min())
    return None


def _close(got: Tensor, expected: Tensor) -> Tensor:
    """Return where two gradients agree; a rounding beside zero is none of what is looked for here."""
    return isclose(got, expected, rtol=1e-5, atol=1e-6 * float(expected.nan_to_num().abs().max()))
