r"""Whether a gradient lacks a term, or has one too many: what is missing is one product of what backward is handed.

With the gradient :math:`g`, the right one :math:`g'`, the cotangent :math:`v` and arguments or outputs :math:`a, b`:

.. math::

    g' - g = c\, v \odot a \odot b, \qquad g' - g = c\, a \odot \textstyle\sum_d v \odot b
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from gradspec.explain._factor import factor_of
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._bound import declared

#: Up to how many places of an output are asked one by one; what is more than rounding, in parts of the largest.
_PLACES, _CLEARLY = 64, 1e-3
#: A term with its name.
_Term = tuple[str, Tensor]


def missing_term(wrong: Wrong) -> Reason | None:
    """Whether it is right but for one term."""
    if len(wrong.v) != 1 or wrong.v[0].shape != wrong.got.shape:
        return None
    lacks = wrong.expected - wrong.got
    for name, term in _terms(wrong):
        if (c := factor_of(lacks, term, tells_one=False, known=_off(wrong, lacks))) is not None:
            how = "added" if c > 0 else "taken away"
            said = f"right once {_times(abs(c))}{name} is {how}: a term is missing, or one too many"
            return Reason(kind="term", words=said, evidence={"term": name, "times": round(c, 9)})
    return None


def missing_sum(wrong: Wrong) -> Reason | None:
    """Whether the term is a tensor times numbers that are equal along a dimension, as those of a sum over it are."""
    lacks = wrong.expected - wrong.got
    for name, factor in _factors(wrong, lacks):
        for dim, size in enumerate(lacks.shape):
            ratio, right = lacks / factor, wrong.expected / factor
            off = _off(wrong, lacks) * lacks.abs().max() / factor.abs()
            others = [d for d, n in enumerate(lacks.shape) if d != dim and n > 1]
            if any(_is_constant(ratio, d, off) for d in others):
                continue
            if size > 2 and _is_constant(ratio, dim, off) and not _is_constant(right, dim, off):
                term = "the same number" if name == _CONSTANT else f"the same multiple of {name}"
                what = "a term that is the same there is missing, or wrong"
                said = f"right once {term} is added all along dimension {dim}: {what}"
                return Reason(kind="sum term", words=said, evidence={"of": name, "dimension": dim})
    return None


def missing_others(wrong: Wrong) -> Reason | None:
    """Whether each element takes the cotangent at its own place alone, where the right one takes others too."""
    v = wrong.v[0]
    if len(wrong.v) != 1 or v.shape != wrong.got.shape or not 1 < v.numel() <= _PLACES:
        return None
    is_more = False
    for k in range(v.numel()):
        alone = torch.zeros_like(v)
        alone.view(-1)[k] = v.reshape(-1)[k]
        one = replace(wrong, v=(alone,))
        got, right = one.got.clone().reshape(-1), one.expected.clone().reshape(-1)
        got[k] = 0
        if got.any():
            return None
        own, right[k] = right[k].clone(), 0
        is_more = is_more or bool(right.abs().max() > _CLEARLY * own.abs())
    said = (
        "each element is of the cotangent at its own place alone, and moves other outputs, too: what comes from those "
        "is missing, as the sum in the backward of a softmax"
    )
    return Reason(kind="sum term", words=said, evidence={"of": "other places"}) if is_more else None


def other_dimension(wrong: Wrong) -> Reason | None:
    """Whether a sum in it goes over another dimension than it should."""
    if len(wrong.v) != 1:
        return None
    lacks = wrong.expected - wrong.got if wrong.v[0].shape == wrong.got.shape else None
    (v,) = wrong.v
    for name, factor in (*_factors(wrong, v), *_narrow_factors(wrong, v)):
        sums = {d: (v * factor).sum(d) for d in range(v.ndim)}
        for right, theirs in sums.items():
            for mine, ours in sums.items():
                if mine == right:
                    continue
                if wrong.got.shape == ours.shape and wrong.same(wrong.got, ours) and wrong.same(wrong.expected, theirs):
                    return _over(mine, right, name)
                if lacks is not None and _is_of_sums(wrong, lacks, theirs.unsqueeze(right) - ours.unsqueeze(mine)):
                    return _over(mine, right, name)
    return _broadcast(wrong, v)


def _over(mine: int, right: int, of: str) -> Reason:
    said = f"backward sums {_product(_CONSTANT, of)} over dimension {mine}, where dimension {right} is meant"
    return Reason(kind="dimension", words=said, evidence={"over": mine, "meant": right})


def _is_of_sums(wrong: Wrong, lacks: Tensor, difference: Tensor) -> bool:
    return any(
        factor_of(lacks, factor * difference, tells_one=False) is not None for _, factor in _factors(wrong, lacks)
    )


def _broadcast(wrong: Wrong, v: Tensor) -> Reason | None:
    """Whether the cotangent, which has a dimension less, is spread along another one than it should be."""
    got, expected = wrong.got, wrong.expected
    if v.ndim + 1 != got.ndim or bool((v == 0).any()):
        return None
    fitting = [d for d in range(got.ndim) if _fits(v, got, d)]
    for mine in fitting:
        for right in fitting:
            if (
                mine != right
                and factor_of(got / v.unsqueeze(mine), expected / v.unsqueeze(right), tells_one=False) is not None
            ):
                said = f"backward spreads its cotangent along dimension {mine}, where dimension {right} is meant"
                return Reason(kind="dimension", words=said, evidence={"over": mine, "meant": right})
    return None


def _fits(v: Tensor, x: Tensor, dim: int) -> bool:
    return torch.Size(n for d, n in enumerate(x.shape) if d != dim) == v.shape


def _is_constant(tensor: Tensor, dim: int, off: Tensor) -> bool:
    """Whether all along a dimension is one number, but for how far off each may be."""
    near = off.argmin(dim, keepdim=True)
    first = tensor.gather(dim, near)
    return bool(((tensor - first).abs() <= 1e-7 * first.abs() + off + off.gather(dim, near)).all())


def _off(wrong: Wrong, lacks: Tensor) -> float:
    """Return how far off what a gradient lacks may be, of the largest of it, as far as the right one is known."""
    known = declared(wrong.trial.spec, lacks.numel())
    return known * float(wrong.expected.abs().max()) / float(lacks.abs().max()) if known else 0.0


#: The name of the cotangent by itself.
_CONSTANT = "the cotangent"


def _factors(wrong: Wrong, v: Tensor) -> Iterator[_Term]:
    yield _CONSTANT, torch.ones_like(v)
    yield from ((name, t) for name, t in wrong.values.items() if t.shape == v.shape)


def _narrow_factors(wrong: Wrong, v: Tensor) -> Iterator[_Term]:
    """Yield the tensors of one dimension less that fit beside a cotangent."""
    for name, value in wrong.values.items():
        if value.ndim + 1 == v.ndim:
            yield from ((name, value.unsqueeze(d)) for d in range(v.ndim) if _fits(value, v, d))


def _terms(wrong: Wrong) -> Iterator[_Term]:
    (v,) = wrong.v
    factors = list(_factors(wrong, v))
    for (one, a), (other, b) in combinations_with_replacement(factors, 2):
        yield _product(_CONSTANT, one, other), v * a * b
    logarithms = [(f"`exp` of {name}", t.exp()) for name, t in factors if "output" in name]
    for one, a in (*factors, *logarithms):
        for other, b in factors:
            for dim in range(v.ndim):
                name = f"the sum of {_product(_CONSTANT, other)} over dimension {dim}"
                yield _product(name, one), a * (v * b).sum(dim, keepdim=True)


def _product(*names: str) -> str:
    first, *rest = names
    return " times ".join((first, *(name for name in rest if name != _CONSTANT)))


def _times(c: float) -> str:
    return "" if f"{c:.3g}" == "1" else f"{c:.3g} times "
