r"""A call reads no memory that nobody wrote: filled with NaN, new memory reaches neither the value nor the gradient.

Why it matters: `torch.empty` gives memory of tensors that are gone. It often holds zeros, or the right numbers of an
earlier call, so that a test passes on one run and fails on the next.

What breaks it: rows behind the last tile that no program writes, an expert that gets no token, a gradient made by
`torch.empty_like` whose masked elements are skipped.

Remedy: write every element, or start from `torch.zeros`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._generators import seeded
from gradspec.laws.tensor.support._given import Given, values_and_gradients
from gradspec.laws.tensor.support._new_memory import of_nan, of_zeros

WHY = Reason(
    kind="unwritten memory",
    of_function=True,
    words="torch.empty, empty_like or new_empty is handed on before all of it is written: fill it, or start from zeros",
)


def _check(trial: Trial) -> Finding:
    return unwritten(trial) or HOLDS


def unwritten(trial: Trial) -> Finding | None:
    """Return the finding that a result holds memory that nobody wrote; None where it holds none."""
    return unwritten_of(lambda: _given(trial))


def unwritten_of(compute: Callable[[], Given]) -> Finding | None:
    """Return the same of what is computed in any other way, by name."""
    with of_nan():
        filled = compute()
    if not any(bool(_fillings(t).any()) for t in filled.values()):
        return None
    with of_zeros():  # as it is it may hold NaN, which could be taken for a number that is computed
        cleared = compute()
    for name, mine in filled.items():
        theirs = cleared.get(name)
        if theirs is not None and theirs.shape == mine.shape:
            off = _fillings(mine) & ~_fillings(theirs)
            if bool(off.any()):
                return _said(name, mine, off)
    return None


def _given(trial: Trial) -> Given:
    with seeded(trial.seed):
        values, gradients = values_and_gradients(trial.spec.function, trial)
    return values | gradients


def _fillings(tensor: Tensor) -> Tensor:
    """Return where a tensor has what torch fills new memory with."""
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.isnan()
    if tensor.dtype is torch.bool:
        return torch.zeros_like(tensor)
    return tensor == torch.iinfo(tensor.dtype).max


def _said(name: str, given: Tensor, off: Tensor) -> Finding:
    return broken(
        f"{name} is memory that nobody wrote in {int(off.sum())} of {off.numel()} elements",
        argument=f"{name}, {describe(given)}",
        index=str(off.nonzero()[0].tolist()),
        got="what new memory is filled with",
        expected="a number that is written",
        rank=Rank.WRONG,
        reason=WHY,
    )


UNINITIALIZED_MEMORY = Law(
    name="uninitialized_memory",
    family="values",
    statement=r"F_{\text{new memory filled}}(x) = F(x)",
    check=_check,
    requires=("primal",),
    doc=__doc__ or "",
)
