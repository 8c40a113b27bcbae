"""What follows from a fake kernel that says otherwise than the real one: it does not happen once the two agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import SymInt, Tensor
from torch._library.simple_registry import singleton
from torch._library.utils import Kernel
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._asked import Asked
from gradspec._audit._follows import following
from gradspec.law import Rank, Status
from gradspec.laws.tensor.support._call import fresh
from gradspec.report import Report
from gradspec.spec import Case

ROOT = "fake_kernel"
#: What asks a fake kernel for the form of a result.
_ASKING = ("fake", "opcheck", "compile", "dynamic_shapes", "export")


def with_fakes(report: Report, asked: Asked) -> Report:
    """Return a report in which what holds with a right fake kernel follows from the law of that name."""
    wrong = {(v.law, v.case) for v in report.violations if v.status is Status.BROKEN and v.finding.rank == Rank.WRONG}
    cases = [case for case in asked.cases if (ROOT, case.name) in wrong]
    laws = [law for law in asked.laws if law.name in _ASKING and any((law.name, case.name) in wrong for case in cases)]
    if not cases or not laws or asked.subject.operator is None:
        return report
    with _right_kernel(asked.subject.operator, cases):
        found = asked.again(laws, cases=cases)
    held = {cell for cell, verdict in found.items() if verdict.status is Status.HOLDS} & wrong
    return replace(
        report,
        verdicts=tuple(
            replace(v, finding=following(v.finding, ROOT)) if (v.law, v.case) in held else v for v in report.verdicts
        ),
    )


@contextmanager
def _right_kernel(overload: Any, cases: Sequence[Case]) -> Iterator[None]:
    """Let the fake kernel of an operator say of some calls what the real one does."""
    kernels = singleton.find(overload.name()).fake_impl.kernels
    if not kernels:
        yield
        return
    own, known = kernels[-1], dict[Any, Any]()
    for case in cases:
        args, kwargs = tree_map(fresh, (case.args, dict(case.kwargs)))
        known[_form((args, kwargs))] = overload(*args, **kwargs)

    def right(*args: Any, **kwargs: Any) -> Any:
        made = known.get(_form((args, kwargs)))
        return own.func(*args, **kwargs) if made is None else tree_map(_alike, made)

    kernels.append(Kernel(right, own.source))
    try:
        yield
    finally:
        kernels.pop()


def _form(given: Any) -> tuple[Any, ...] | None:
    """Return the sizes and dtypes of the tensors of a call; None where a size is a symbol."""
    tensors = [one for one in tree_leaves(given) if isinstance(one, Tensor)]
    if any(isinstance(size, SymInt) for t in tensors for size in t.shape):
        return None
    return tuple((tuple(t.shape), t.dtype) for t in tensors)


def _alike(made: Any) -> Any:
    if not isinstance(made, Tensor):
        return made
    return torch.empty_strided(made.shape, made.stride(), dtype=made.dtype, device=made.device)
