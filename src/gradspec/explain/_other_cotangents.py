"""The tests of a gradient that differs which call with other cotangents, each with what it then says."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from gradspec.explain._wrong import Wrong, scaled, some
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import each_alone, vjp
from gradspec.laws.tensor.support._reference import reference


def ignores_the_cotangent(wrong: Wrong) -> Reason | None:
    """Whether it is the same for each cotangent: for one twice as large, and for a small one of the other sign."""
    if not wrong.got.isfinite().all() or not wrong.got.any():
        return None
    for factor in (2, -1e-3):  # what clips or normalises the cotangent keeps its sign
        other = vjp(wrong.trial.spec.function, wrong.inputs, scaled(wrong.v, factor))[wrong.name]
        if not wrong.same(some(other), wrong.got):
            return None
    return _ignored(wrong)


def _ignored(wrong: Wrong) -> Reason:
    ones = tuple(torch.ones_like(t) for t in wrong.v)
    of_ones = some(vjp(reference(wrong.trial.spec), wrong.inputs, ones)[wrong.name])
    if wrong.same(wrong.got, of_ones):
        said = "backward ignores its cotangent, and takes ones for it: multiply by grad_output"
        return Reason(kind="cotangent of ones", words=said)
    said = "backward ignores its cotangent (twice the cotangent gives the same gradient): multiply by grad_output"
    return Reason(kind="ignored cotangent", words=said)


def ignores_an_output(wrong: Wrong) -> Reason | None:
    """Whether nothing comes of the cotangent of one output, or of some to one argument, and all else is right."""
    if len(wrong.v) == 1:
        return None
    if (found := _wrong_output(wrong)) is None:
        return _ignored_by_one(wrong)
    k, got = found
    if got is not None and bool(got.any()):
        return None
    said = f"backward ignores the cotangent of output {k}: what comes from it is missing"
    return Reason(kind="missing output", words=said, evidence={"output": k})


def _ignored_by_one(wrong: Wrong) -> Reason | None:
    """Whether the gradient in question is right for the cotangents of some outputs, and zero for those of others."""
    missing: list[int] = []
    is_told = False
    for k, alone in enumerate(each_alone(wrong.v)):
        right = vjp(reference(wrong.trial.spec), wrong.inputs, alone)[wrong.name]
        got = vjp(wrong.trial.spec.function, wrong.inputs, alone)[wrong.name]
        if right is None or not bool(right.any()):
            if got is not None and bool(got.any()):
                return None
        elif got is None or not bool(got.any()):
            missing.append(k)
        elif wrong.same(got, right):
            is_told = True
        else:
            return None
    if not missing or not is_told:
        return None
    ignored = " and ".join(f"output {k}" for k in missing)
    said = f"the gradient of `{wrong.name}` ignores the cotangent of {ignored}: what comes from it is missing"
    return Reason(kind="missing output", words=said, evidence={"argument": wrong.name, "outputs": missing})


def of_one_output(wrong: Wrong) -> Reason | None:
    """Whether it is wrong for the cotangent of one output."""
    if (found := _wrong_output(wrong)) is None:
        return None
    said = f"wrong for the cotangent of output {found[0]}, right for the others"
    return Reason(kind="wrong output", words=said, evidence={"output": found[0]})


def _wrong_output(wrong: Wrong) -> tuple[int, Tensor | None] | None:
    """Return the one output for whose cotangent a gradient is wrong, and the gradient of that."""
    if len(wrong.v) == 1:
        return None
    off, is_told = [], False
    for k, alone in enumerate(each_alone(wrong.v)):
        if not wrong.is_right(wrong.inputs, alone):
            off.append((k, vjp(wrong.trial.spec.function, wrong.inputs, alone)[wrong.name]))
        else:
            right = vjp(reference(wrong.trial.spec), wrong.inputs, alone)[wrong.name]
            is_told = is_told or (right is not None and bool(right.any()))
    if len(off) != 1 or not is_told:  # beside an index, which has no gradient, one output is all there is
        return None
    return off[0]


def in_another_order(wrong: Wrong) -> Reason | None:
    """Whether it is right for two outputs where each gets the cotangent of the other."""
    for j, k in combinations(range(len(wrong.v)), 2):
        if (wrong.v[j].shape, wrong.v[j].dtype) != (wrong.v[k].shape, wrong.v[k].dtype):
            continue
        other = list(wrong.v)
        other[j], other[k] = other[k], other[j]
        gradients = vjp(wrong.trial.spec.function, wrong.inputs, tuple(other))
        if all(wrong.same(some(gradients[name]), some(wrong.right[name])) for name in wrong.inputs.wrt):
            said = f"backward takes the cotangents of outputs {j} and {k} for each other: exchange them"
            return Reason(kind="exchanged cotangents", words=said, evidence={"outputs": [j, k]})
    return None


def reduced(wrong: Wrong) -> Reason | None:
    """Whether it is the right one for the mean, the sum or one number of the cotangent in place of each of them."""
    if len(wrong.v) != 1 or wrong.v[0].numel() < 2:
        return None
    (v,) = wrong.v
    dims: list[tuple[int, ...]] = [(d,) for d in range(v.ndim) if v.shape[d] > 1]
    for along in dims if len(dims) < 2 else [tuple(range(v.ndim)), *dims]:
        for what, one in _reductions(v, along).items():
            right = vjp(reference(wrong.trial.spec), wrong.inputs, (one.expand_as(v).clone(),))[wrong.name]
            if wrong.same(wrong.got, some(right)):
                over = "" if len(along) == v.ndim else f" over dimension {along[0]}"
                said = f"right where all numbers of the cotangent are equal: backward takes {what}{over} for all"
                return Reason(kind="reduced cotangent", words=said, evidence={"takes": what, "over": list(along)})
    return None


def _reductions(v: Tensor, along: tuple[int, ...]) -> dict[str, Tensor]:
    first = v
    for dim in along:
        first = first.narrow(dim, 0, 1)
    return {"its mean": v.mean(along, keepdim=True), "its sum": v.sum(along, keepdim=True), "its first number": first}


def conjugated(wrong: Wrong) -> Reason | None:
    """Whether a conjugate is missing."""
    if not any(t.is_complex() for t in wrong.v):
        return None
    turned = vjp(wrong.trial.spec.function, wrong.inputs, tuple(t.conj().resolve_conj() for t in wrong.v))[wrong.name]
    is_it = wrong.same(some(turned).conj().resolve_conj(), wrong.expected)
    said = "right where the factors of backward are conjugated: torch asks for the conjugate of the derivative"
    return Reason(kind="conjugate", words=said) if is_it else None
