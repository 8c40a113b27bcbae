r"""A call reads no memory that nobody wrote: filled with NaN, new memory reaches neither the value nor the gradient.

Why it matters: `torch.empty` gives memory of tensors that are gone. It often holds zeros, or the right numbers of an
earlier call, so that a test passes on one run and fails on the next.

What breaks it: rows behind the last tile that no program writes, an expert that gets no token, a gradient made by
`torch.empty_like` whose masked elements are skipped.

Remedy: write every element, or start from `torch.zeros`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._generators import seeded
from gradspec.laws.tensor.support._given import values_and_gradients
from gradspec.laws.tensor.support._new_memory import new_memory

WHY = Reason(
    kind="unwritten memory",
    of_function=True,
    words="torch.empty, empty_like or new_empty is handed on before all of it is written: fill it, or start from zeros",
)


def _check(trial: Trial) -> Finding:
    return unwritten(trial) or HOLDS


def unwritten(trial: Trial) -> Finding | None:
    """Return the finding that a result holds memory that nobody wrote; None where it holds none."""
    with seeded(trial.seed), new_memory(fill=False):
        as_is = values_and_gradients(trial.spec.function, trial)
    with seeded(trial.seed), new_memory(fill=True):
        filled = values_and_gradients(trial.spec.function, trial)
    for before, after in zip(as_is, filled, strict=True):
        for name, mine in after.items():
            if (off := _off(before.get(name), mine)) is not None:
                return _said(name, mine, off)
    return None


def _off(before: Tensor | None, after: Tensor) -> Tensor | None:
    """Return where a result is not as before because it was filled; None where nowhere."""
    if before is None or before.shape != after.shape or before.dtype != after.dtype:
        return None
    if after.is_floating_point() or after.is_complex():
        off = after.isnan() & ~before.isnan()
    elif after.dtype is torch.bool:
        return None
    else:
        off = (after == torch.iinfo(after.dtype).max) & (before != after)
    return off if bool(off.any()) else None


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
    doc=__doc__ or "",
)
