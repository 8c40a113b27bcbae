"""Whether a function returns memory that nobody wrote: with new memory filled with NaN, the results have it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from gradspec.explain._given import values_and_gradients
from gradspec.law import Finding, Rank, Reason, Trial, broken
from gradspec.laws.tensor.support._compare import describe

WHY = Reason(
    kind="unwritten memory",
    of_function=True,
    words="torch.empty, empty_like or new_empty is handed on before all of it is written: fill it, or start from zeros",
)


def unwritten(trial: Trial) -> Finding | None:
    """Return the finding that a result holds memory that nobody wrote; None where it holds none.

    torch fills new memory with NaN while its algorithms are deterministic; both calls are made so.
    """
    with _filled(fill=False):
        as_is = values_and_gradients(trial.spec.function, trial)
    with _filled(fill=True):
        filled = values_and_gradients(trial.spec.function, trial)
    for before, after in zip(as_is, filled, strict=True):
        for name, mine in after.items():
            if (found := _off(before.get(name), mine)) is not None:
                return _said(name, mine, found)
    return None


@contextmanager
def _filled(*, fill: bool) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]  # torch sets it late
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]  # as above
        try:
            yield
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]  # as above
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])


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
