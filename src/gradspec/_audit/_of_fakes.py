"""What follows from a fake kernel that says otherwise than the real one: it does not happen once the two agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import SymInt, Tensor
from torch._library.simple_registry import singleton
from torch._library.utils import Kernel
from torch.utils._pytree import tree_leaves, tree_map

from gradspec._audit._asked import Asked
from gradspec._audit._follows import following
from gradspec.law import Finding, Rank, Status
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
    known = asked.apart(lambda: _made_by(asked.subject.operator, cases))
    if isinstance(known, Finding):
        return report
    with _right_kernel(asked.subject.operator, known):
        found = asked.again(laws, cases=cases)
    held = {cell for cell, verdict in found.items() if verdict.status is Status.HOLDS} & wrong
    return replace(
        report,
        verdicts=tuple(
            replace(v, finding=following(v.finding, ROOT)) if (v.law, v.case) in held else v for v in report.verdicts
        ),
    )


@dataclass(frozen=True)
class _Kind:
    """A tensor without its numbers."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


def _made_by(overload: Any, cases: Sequence[Case]) -> dict[Any, Any]:
    """Return what the real kernel makes of some calls, by their form."""
    found = {}
    for case in cases:
        args, kwargs = tree_map(fresh, (case.args, dict(case.kwargs)))
        found[_form((args, kwargs))] = tree_map(_kind, overload(*args, **kwargs))
    return found


def _kind(made: Any) -> Any:
    return _Kind(tuple(made.shape), made.stride(), made.dtype, made.device) if isinstance(made, Tensor) else made


@contextmanager
def _right_kernel(overload: Any, known: Mapping[Any, Any]) -> Iterator[None]:
    """Let the fake kernel of an operator say of some calls what the real one does."""
    kernels = singleton.find(overload.name()).fake_impl.kernels
    if not kernels:
        yield
        return
    own = kernels[-1]

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
    if not isinstance(made, _Kind):
        return made
    return torch.empty_strided(made.size, made.strides, dtype=made.dtype, device=made.device)
