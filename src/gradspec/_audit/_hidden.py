"""Tensors that a Function is given inside a list: torch looks at the arguments of `apply` only, and not into them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch.autograd import Function
from torch.utils._pytree import tree_leaves

from gradspec._audit._measured import Measured
from gradspec._audit._subject import Subject, has_own_backward
from gradspec._engine._flat import taken_apart
from gradspec._one_line import listed
from gradspec.law import Rank, Status, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, bound, differentiable
from gradspec.report import Report
from gradspec.spec import Case


def hidden_in_lists(subject: Subject, case: Case, trial: Trial) -> tuple[str, ...]:
    """Return the parameters of a call whose tensors a Function with its own backward gets inside a list.

    The Function may be what is audited, or be called by it. If any tensor of the call is marked as trained, only lists
    that hold a marked one count: the others are constants.

    Args:
        subject: what is audited.
        case: the call.
        trial: of the same call, with one name an argument.
    """
    marked = subject.marked.get(case.name, frozenset())
    held = tuple(
        name
        for name, value in bound(subject.signature, case).items()
        if _holds(subject, name, value) and (not marked or marked.intersection(taken_apart(name, value)))
    )
    if subject.implementation is not None:
        return held if has_own_backward(subject.implementation) else ()
    inputs = Inputs.of(trial)
    with _lists_that_apply_gets() as found:
        trial.spec.function(*inputs.args(inputs.leaves()))
    return held if found else ()


def with_hidden(report: Report, measured: Measured) -> Report:
    """Return a report in which `surrogate` is broken by the tensors that no gradient reaches for that reason."""
    if not measured.hidden:
        return report
    names = listed(measured.hidden)
    finding = broken(
        f"no gradient reaches the tensors in {names}, and the output changes with them",
        argument=f"gradient of {names}",
        got="None",
        likely="torch sees no tensors inside a list: pass them as " + ", ".join(f"*{name}" for name in measured.hidden),
        rank=Rank.WRONG,
        details={"lost": list(measured.hidden)},
    )
    verdicts = (
        replace(v, finding=finding) if v.law == "surrogate" and v.status is not Status.ERROR else v
        for v in report.verdicts
    )
    return replace(report, verdicts=tuple(verdicts))


def _holds(subject: Subject, name: str, value: Any) -> bool:
    values = value if subject.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL else (value,)
    return any(map(_is_list_of_tensors, values))


def _is_list_of_tensors(value: Any) -> bool:
    return isinstance(value, list | tuple | dict) and any(map(differentiable, tree_leaves(value)))


@contextmanager
def _lists_that_apply_gets() -> Iterator[list[type]]:
    """Give the Functions with a backward whose `apply` is called with tensors in a list meanwhile."""
    found: list[type] = []
    own, original = "apply" in vars(Function), inspect.getattr_static(Function, "apply")

    def watched(cls: type, *args: Any, **kwargs: Any) -> Any:
        if has_own_backward(cls) and any(map(_is_list_of_tensors, args)):
            found.append(cls)
        return original.__get__(None, cls)(*args, **kwargs)

    Function.apply = classmethod(watched)  # type: ignore[assignment,method-assign]  # for one call
    try:
        yield found
    finally:
        if own:
            Function.apply = original  # type: ignore[method-assign]
        else:
            del Function.apply
