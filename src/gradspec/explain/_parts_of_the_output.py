"""The tests of a gradient that differs by what comes of one part of the output, each with what it then says."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from gradspec.explain._factor import factor_of
from gradspec.explain._where_wrong import at_places
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import vjp

#: Along a longer dimension the parts are not asked one by one.
_MOST = 64
#: How near two factors are that are one.
_NEAR = 1e-4


def with_a_scaled_cotangent(wrong: Wrong) -> Reason | None:
    """Whether it is right once the cotangent is multiplied, or divided, by a tensor of the call."""
    if len(wrong.v) != 1:
        return None
    (v,) = wrong.v
    for name, value in wrong.values.items():
        if value.dtype != v.dtype:
            continue
        try:
            value = value.expand(v.shape)
        except RuntimeError:
            continue
        for turned, how, said in (
            (v * value, "multiplied", "backward leaves that out"),
            (v / value, "divided", "backward multiplies by it once too often"),
        ):
            got = vjp(wrong.trial.spec.function, wrong.inputs, (turned,))[wrong.name]
            if got is not None and wrong.same(got, wrong.expected):
                which = f"the gradient of `{wrong.name}` is " if len(wrong.inputs.wrt) > 1 else ""
                words = f"{which}right once the cotangent is {how} by {name}: {said}"
                return Reason(kind="scaled cotangent", words=words, evidence={"by": name, "how": how})
    return None


def from_some_outputs(wrong: Wrong) -> Reason | None:
    """Whether what comes of some places of the output is missing, or off by a factor, and all else is right."""
    if len(wrong.v) != 1:
        return None
    for dim, size in enumerate(wrong.v[0].shape):
        if 1 < size <= _MOST and (factors := _factors(wrong, dim)) and (said := _said(factors, dim, size)):
            return said
    return None


def _factors(wrong: Wrong, dim: int) -> dict[int, float] | None:
    """Return by which factor that is off which comes of each place of a dimension; None where one is off by none.

    A place of which nothing should come, and nothing does, is left out.
    """
    found = {}
    for place in range(wrong.v[0].shape[dim]):
        part = torch.zeros_like(wrong.v[0])
        part.select(dim, place).copy_(wrong.v[0].select(dim, place))
        one = replace(wrong, v=(part,))
        got, expected = one.got, one.expected
        if not bool(expected.any()) and not bool(got.any()):
            continue
        by = factor_of(got, expected, tells_one=False) if bool(got.any()) else 0.0
        if by is None or (by and int(expected.count_nonzero()) == 1):  # of a single number any factor can be said
            return None
        found[place] = by
    return found


def _said(factors: dict[int, float], dim: int, size: int) -> Reason | None:
    off = {place: by for place, by in factors.items() if abs(by - 1) > _NEAR}
    if not off:
        return None
    evidence = {"dimension": dim, "places": list(off)}
    first = next(iter(off.values()))
    if all(math.isclose(by, first, rel_tol=_NEAR, abs_tol=_NEAR) for by in off.values()):
        if len(off) == len(factors):
            return None
        at = f"what comes of the output {at_places(list(off), dim, size)}"
        words = f"{at} is {f'off by the factor {first:.4g}' if first else 'missing'}, and all else is right"
        return Reason(kind="part of the output", words=words, evidence=evidence | {"factor": first})
    few = ", ".join(f"{by:.4g} at {place}" for place, by in list(off.items())[:4])
    words = f"what comes of each place of dimension {dim} of the output is off by a factor of its own: {few}"
    return Reason(kind="factors of the output", words=words, evidence=evidence)
