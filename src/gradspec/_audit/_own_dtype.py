"""The dtype in which a function can be called: the one of the cases, or else another that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._subject import Subject
from gradspec._heartbeat import beat
from gradspec._held import together
from gradspec._process_state import unwarned
from gradspec.law import shown
from gradspec.laws.tensor.support._bounded import bound_by
from gradspec.laws.tensor.support._call import fresh, like, outputs
from gradspec.spec import Case

#: The dtypes that are tried, in this order, where a call raises as it is given.
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def plain_error(subject: Subject, cases: Sequence[Case]) -> str:
    """Return what the first plain call that fails raises, and on which case; empty if none does."""
    for case in cases:
        try:
            _call(subject, case)
        except (Exception, SystemExit) as error:
            return f"{shown(error)} (case {case.name!r})"
        finally:
            beat()
    return ""


def _call(subject: Subject, case: Case) -> object:
    return subject.call(*tree_map(fresh, case.args), **tree_map(fresh, dict(case.kwargs)))


def backward_error(subject: Subject, cases: Sequence[Case]) -> str:
    """Return what the first backward pass that fails raises, and on which case; empty if none does.

    A call has a backward pass to the tensors that require a gradient.
    """
    for case in cases:
        args, kwargs = together((case.args, dict(case.kwargs)), lambda t: fresh(t).requires_grad_(t.requires_grad))
        leaves = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.requires_grad]
        try:
            y = [t for t in outputs(subject.call(*args, **kwargs)) if isinstance(t, Tensor) and t.requires_grad]
            if leaves and y:
                torch.autograd.grad(y, leaves, like(tuple(y), 0), allow_unused=True)
        except (Exception, SystemExit) as error:
            return f"{shown(error)} (case {case.name!r})"
        finally:
            beat()
    return ""


def accepted(subject: Subject, cases: Sequence[Case]) -> torch.dtype | None:
    """Return the first dtype in which every case can be called, another than the one that it has."""
    others = ((dtype, in_dtype(cases, dtype)) for dtype in DTYPES)
    return next((dtype for dtype, other in others if other is not None and not plain_error(subject, other)), None)


def refused(subject: Subject, cases: Sequence[Case]) -> tuple[torch.dtype, ...]:
    """Return the dtypes in which some case cannot be called; one in which an iteration has no end is none of them.

    Of complex numbers with halves nobody asks: torch itself computes little with them.
    """
    bound, found = bound_by(lambda: [_call(subject, case) for case in cases]), []
    leaves = tree_leaves([(case.args, dict(case.kwargs)) for case in cases])
    is_complex = any(isinstance(leaf, Tensor) and leaf.is_complex() for leaf in leaves)
    for dtype in (one for one in DTYPES if not (is_complex and one.itemsize < 4)):
        with bound() as bounded:
            error = plain_error(subject, in_dtype(cases, dtype) or ())
        if error and not (bounded is not None and bounded.is_over):
            found.append(dtype)
    return tuple(found)


def in_dtype(cases: Sequence[Case], dtype: torch.dtype) -> tuple[Case, ...] | None:
    """Return the cases with their floating tensors in another dtype; None where that changes nothing.

    Complex ones get parts of that dtype, where torch has one.
    """
    changed = False

    def cast(value: Any) -> Any:
        nonlocal changed
        if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        with unwarned():  # of complex numbers of 32 bits
            other = value.to(dtype.to_complex() if value.is_complex() else dtype)
        changed = changed or other is not value
        return other

    calls = [together((case.args, dict(case.kwargs)), cast) for case in cases]
    found = tuple(replace(case, args=args, kwargs=named) for case, (args, named) in zip(cases, calls, strict=True))
    return found if changed else None
