"""The dtype in which a function can be called: the one of the cases, or else another that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec._audit._subject import Subject
from gradspec.law import shown
from gradspec.laws.tensor.support._call import fresh
from gradspec.spec import Case

#: The dtypes that are tried, in this order, where a call raises as it is given.
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def plain_error(subject: Subject, cases: Sequence[Case]) -> str:
    """Return what the first plain call that fails raises, and on which case; empty if none does."""
    for case in cases:
        try:
            subject.call(*each(case.args, fresh), **each(dict(case.kwargs), fresh))
        except (Exception, SystemExit) as error:
            return f"{shown(error)} (case {case.name!r})"
    return ""


def accepted(subject: Subject, cases: Sequence[Case]) -> tuple[torch.dtype, ...]:
    """Return the dtypes in which every case can be called, others than the one that it has."""
    return tuple(
        dtype for dtype in DTYPES if (other := in_dtype(cases, dtype)) is not None and not plain_error(subject, other)
    )


def refused(subject: Subject, cases: Sequence[Case]) -> tuple[torch.dtype, ...]:
    """Return the dtypes in which some case cannot be called."""
    others = ((dtype, in_dtype(cases, dtype)) for dtype in DTYPES)
    return tuple(dtype for dtype, other in others if other is not None and plain_error(subject, other))


def in_dtype(cases: Sequence[Case], dtype: torch.dtype) -> tuple[Case, ...] | None:
    """Return the cases with their real floating tensors in another dtype; None where that changes nothing."""
    changed = False

    def cast(value: Any) -> Any:
        nonlocal changed
        if not isinstance(value, Tensor) or not value.is_floating_point() or value.dtype == dtype:
            return value
        changed = True
        return value.to(dtype)

    found = tuple(replace(case, args=each(case.args, cast), kwargs=each(dict(case.kwargs), cast)) for case in cases)
    return found if changed else None


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested lists, tuples and dicts with each leaf changed."""
    if isinstance(value, dict):
        return {key: each(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(each(item, change) for item in value)
    return change(value)
