"""Explain a value that differs: each answer is shown by a test of its own."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor

from gradspec.explain._options import with_other_options
from gradspec.explain._other_calls import counted_from_the_front
from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._bounded import bound_by
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly

DEFAULT = Reason(
    kind="default dtype",
    words="a tensor is made in the default dtype: give the dtype of the argument (x.new_zeros(...), dtype=x.dtype)",
)
SQUEEZED = Reason(
    kind="squeezed",
    words="a dimension of size 1 is gone with the one that is meant: name it, squeeze(dim) for squeeze()",
)


def why_value(trial: Trial, inputs: Inputs, place: int, expected: Any) -> Reason | None:
    """Return what is wrong with an output, as far as a test shows it; None where none does."""
    if isinstance(expected, Tensor) and quietly(lambda: _of_the_default_dtype(trial, inputs, place, expected)):
        return DEFAULT
    if quietly(lambda: _is_squeezed(trial, inputs, place, expected)):
        return SQUEEZED
    # Of a flag alone: a tolerance of 0 has no end.
    flags = ((said, other) for said, other in with_other_options(inputs) if isinstance(said.evidence["value"], bool))
    bounded = None
    for said, other in chain(counted_from_the_front(inputs), flags):
        bounded = bounded or bound_by(lambda: _is_right(trial, inputs, place))
        with bounded():
            is_right = quietly(lambda other=other: _is_right(trial, other, place))  # type: ignore[misc]
        if is_right:
            return said
    return None


def _is_squeezed(trial: Trial, inputs: Inputs, place: int, expected: Any) -> bool:
    """Whether an output is the right one but for dimensions of size 1."""
    got = outputs(trial.spec.function(*inputs.args()))[place]
    is_short = got.ndim < expected.ndim and [n for n in got.shape if n != 1] == [n for n in expected.shape if n != 1]
    return is_short and compare(trial, "a value", got.reshape(expected.shape), expected) is HOLDS


def _is_right(trial: Trial, inputs: Inputs, place: int) -> bool:
    got, expected = (outputs(f(*inputs.args()))[place] for f in (trial.spec.function, trial.spec.primal))
    return bool(expected.any()) and compare(trial, "a value", got, expected) is HOLDS  # of zeros nothing is seen


def _of_the_default_dtype(trial: Trial, inputs: Inputs, place: int, expected: Tensor) -> bool:
    """Whether an output is right, or at least of the right dtype, where that is the default dtype."""
    before = torch.get_default_dtype()
    if not expected.is_floating_point() or expected.dtype == before:
        return False
    torch.set_default_dtype(expected.dtype)
    try:
        got = outputs(trial.spec.function(*inputs.args()))[place]
    finally:
        torch.set_default_dtype(before)
    was = outputs(trial.spec.function(*inputs.args()))[place].dtype
    if was != expected.dtype:
        return bool(was == before and got.dtype == expected.dtype)
    return compare(trial, "a value", got, expected) is HOLDS
