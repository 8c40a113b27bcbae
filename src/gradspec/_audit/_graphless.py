"""Outputs that move with the arguments and have no graph, beside others that have one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from torch import Tensor
from torch.autograd.function import FunctionCtx

from gradspec._audit._subject import Subject
from gradspec._one_line import listed
from gradspec.explain import is_cut_by_name
from gradspec.law import Finding, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable, outputs
from gradspec.laws.tensor.support._slope import moves_smoothly
from gradspec.report import Report


@dataclass(frozen=True, kw_only=True)
class Graphless:
    """An output of a call that has no graph, and moves."""

    case: str
    place: int
    #: What it moves with.
    names: tuple[str, ...]
    #: Whether the code says so: it has a graph once each `detach()`, `.data` and `no_grad()` is left out.
    is_by_name: bool


def graphless_in(subject: Subject, trial: Trial) -> Iterator[Graphless]:
    """Yield the outputs of a call without a graph, where others have one; what a Function marks has none on purpose."""
    if subject.implementation is not None or getattr(trial.spec, "overload", None) is not None:
        return
    inputs, marked = Inputs.of(trial), list[int]()
    mark = FunctionCtx.mark_non_differentiable

    def noted(ctx: Any, *tensors: Tensor) -> None:
        marked.extend(t.data_ptr() for t in tensors)
        mark(ctx, *tensors)

    with patch.object(FunctionCtx, "mark_non_differentiable", noted):
        y = outputs(trial.spec.function(*inputs.args(inputs.leaves())))
    if not any(isinstance(t, Tensor) and t.requires_grad for t in y):
        return
    for place, t in enumerate(y):
        if not isinstance(t, Tensor) or not differentiable(t) or t.requires_grad or t.data_ptr() in marked:
            continue
        alone = _output(trial.spec.function, place)
        if names := tuple(name for name in inputs.wrt if moves_smoothly(alone, inputs, name, trial.seed)):
            is_by_name = is_cut_by_name(alone, inputs)
            yield Graphless(case=trial.case.name, place=place, names=names, is_by_name=is_by_name)


def _output(function: Any, place: int) -> Any:
    return lambda *args, **kwargs: outputs(function(*args, **kwargs))[place]


def with_graphless(report: Report, found: tuple[Graphless, ...]) -> Report:
    """Return a report in which the law `surrogate` asks about outputs without a graph that nothing in the code cuts."""
    verdicts = []
    for verdict in report.verdicts:
        mine = [one for one in found if one.case == verdict.case and not one.is_by_name]
        is_asked = mine and verdict.law == "surrogate" and verdict.status is Status.HOLDS
        verdicts.append(replace(verdict, finding=_asked(mine)) if is_asked else verdict)
    return replace(report, verdicts=tuple(verdicts))


def _asked(found: list[Graphless]) -> Finding:
    places = " and ".join(str(one.place) for one in found)
    names = list(dict.fromkeys(name for one in found for name in one.names))
    them, have, move = ("them", "have", "move") if len(found) > 1 else ("it", "has", "moves")
    asked = (
        f"Is it meant that output {places} {have} no graph? It {move} with {listed(names)}, and a loss of {them} "
        f"trains nothing. If so, return {them} with `detach()`; if not, look for `torch.autograd.grad` without "
        "`create_graph=True`, or for numpy."
    )
    return Finding(status=Status.QUESTION, message=asked, details={"graphless": [one.place for one in found]})
