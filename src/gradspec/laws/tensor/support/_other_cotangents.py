"""The tests of a gradient that differs which call with other cotangents, each with what it then says."""

from __future__ import annotations

from itertools import combinations

import torch

from gradspec.laws.tensor.support._call import vjp
from gradspec.laws.tensor.support._wrong import Wrong, some


def ignores_the_cotangent(wrong: Wrong) -> str:
    """Whether it is the same for each cotangent."""
    twice = vjp(wrong.trial.spec.function, wrong.inputs, tuple(2 * t for t in wrong.v))[wrong.name]
    if wrong.got.isfinite().all() and wrong.got.any() and wrong.same(some(twice), wrong.got):
        return "backward ignores its cotangent (twice the cotangent gives the same gradient): multiply by grad_output"
    return ""


def of_one_output(wrong: Wrong) -> str:
    """Whether it is wrong for the cotangent of one output."""
    if len(wrong.v) == 1:
        return ""
    off = []
    for k, given in enumerate(wrong.v):
        alone = tuple(given if k == j else torch.zeros_like(t) for j, t in enumerate(wrong.v))
        if not wrong.is_right(wrong.inputs, alone):
            off.append((k, vjp(wrong.trial.spec.function, wrong.inputs, alone)[wrong.name]))
    if len(off) != 1:
        return ""
    ((k, got),) = off
    if got is None or not bool(got.any()):
        return f"backward ignores the cotangent of output {k}: what comes from it is missing"
    return f"wrong for the cotangent of output {k}, right for the others"


def in_another_order(wrong: Wrong) -> str:
    """Whether it is right for two outputs where each gets the cotangent of the other."""
    for j, k in combinations(range(len(wrong.v)), 2):
        if (wrong.v[j].shape, wrong.v[j].dtype) != (wrong.v[k].shape, wrong.v[k].dtype):
            continue
        other = list(wrong.v)
        other[j], other[k] = other[k], other[j]
        gradients = vjp(wrong.trial.spec.function, wrong.inputs, tuple(other))
        if all(wrong.same(some(gradients[name]), some(wrong.right[name])) for name in wrong.inputs.wrt):
            return f"backward takes the cotangents of outputs {j} and {k} for each other: exchange them"
    return ""


def of_equal_numbers(wrong: Wrong) -> str:
    """Whether it is right for a constant cotangent."""
    equal = tuple(torch.full_like(t, 2.5) for t in wrong.v)
    if wrong.got.numel() < 2 or not wrong.is_right(wrong.inputs, equal):
        return ""
    if torch.allclose(wrong.got.abs().flatten().sort().values, wrong.expected.abs().flatten().sort().values):
        return ""  # the right numbers in other places
    return "right where all numbers of the cotangent are equal: backward takes its mean, its sum or one of them for all"


def conjugated(wrong: Wrong) -> str:
    """Whether a conjugate is missing."""
    if not any(t.is_complex() for t in wrong.v):
        return ""
    turned = vjp(wrong.trial.spec.function, wrong.inputs, tuple(t.conj().resolve_conj() for t in wrong.v))[wrong.name]
    is_it = wrong.same(some(turned).conj().resolve_conj(), wrong.expected)
    return (
        "right where the factors of backward are conjugated: torch asks for the conjugate of the derivative"
        if is_it
        else ""
    )
