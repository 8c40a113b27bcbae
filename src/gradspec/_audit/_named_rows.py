"""A row without a gradient that an argument or a module names, as the padding of an embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import signature
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gradspec._audit._subject import Subject
from gradspec.explain import holds_twice
from gradspec.law import Law, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, vjp

#: How many other rows are named in its place.
_OTHERS = 8


@dataclass(frozen=True)
class _Name:
    """What names a row: an argument, or an attribute of a module."""

    shown: str
    row: int
    #: The same call in which another row is named.
    renamed: Callable[[Trial, int], AbstractContextManager[Trial]]


def row_without_gradient(law: Law, trial: Trial, subject: Subject) -> str:
    """Return what is asked about a row without a gradient, where all else is right; empty where nothing is."""
    names = list(signature(trial.spec.primal).parameters)
    for name, at in product([*_arguments(trial, names), *_attributes(subject)], _tables(trial.case.args)):
        row, table = name.row, trial.case.args[at]
        if names[at] not in trial.spec.wrt or not -len(table) <= row < len(table):
            continue
        if _is_left_out(trial, names[at], row) and holds_twice(law, _held(trial, at, row)):
            others = [other for other in range(len(table)) if other not in (row, row + len(table))][:_OTHERS]
            if any(_moves_to(law, trial, name, at, other) for other in others):
                return (
                    f"Is it meant that row {row} of `{names[at]}` gets no gradient? It is the row that "
                    f"`{name.shown}` names, whichever that is, as the padding of an embedding, and forward reads it."
                )
    return ""


def _arguments(trial: Trial, names: Sequence[str]) -> Iterator[_Name]:
    def renamed(trial: Trial, row: int, place: int) -> AbstractContextManager[Trial]:
        args = tuple(row if k == place else value for k, value in enumerate(trial.case.args))
        return nullcontext(replace(trial, case=replace(trial.case, args=args)))

    for place, row in enumerate(trial.case.args):
        if _is_row(row):
            yield _Name(names[place], row, partial(renamed, place=place))


def _attributes(subject: Subject) -> Iterator[_Name]:
    @contextmanager
    def renamed(trial: Trial, row: int, module: torch.nn.Module, name: str) -> Iterator[Trial]:
        own = getattr(module, name)
        setattr(module, name, row)
        try:
            yield trial
        finally:
            setattr(module, name, own)

    for path, module in subject.layers[0].named_modules() if subject.layers else ():
        for name, row in vars(module).items():
            if _is_row(row) and not name.startswith("_"):
                yield _Name(".".join(filter(None, (path, name))), row, partial(renamed, module=module, name=name))


def _tables(args: tuple[Any, ...]) -> list[int]:
    return [at for at, t in enumerate(args) if isinstance(t, Tensor) and differentiable(t) and t.ndim]


def _is_row(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_left_out(trial: Trial, name: str, row: int) -> bool:
    gradient = vjp(trial.spec.surrogate, Inputs.of(trial), seed=trial.seed)[name]
    return gradient is not None and not bool(gradient[row].any()) and bool(gradient.any())


def _moves_to(law: Law, trial: Trial, name: _Name, at: int, row: int) -> bool:
    """Whether another row is the one without a gradient if it is named."""
    with name.renamed(trial, row) as other:
        return not holds_twice(law, other) and holds_twice(law, _held(other, at, row))


def _held(trial: Trial, at: int, row: int) -> Trial:
    """Return the call of a function in which a row of a table stays as it is."""
    kept = trial.case.args[at].detach()[row]

    @wraps(trial.spec.surrogate)
    def held(*args: Any) -> Any:
        table = args[at]
        rows = (torch.arange(len(table), device=table.device) == row % len(table)).view(-1, *[1] * (table.ndim - 1))
        stopped = torch.where(rows, kept.to(table.dtype), table)
        return trial.spec.surrogate(*args[:at], stopped, *args[at + 1 :])

    return replace(trial, spec=replace(trial.spec, surrogate=held, gradient=None))
