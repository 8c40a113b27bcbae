"""Whether a gradient is NaN where the value is a number, and which operation makes it so."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gradspec._place import is_of_gradspec, is_under_test
from gradspec.law import Finding, Rank, Reason, Trial, broken
from gradspec.laws import is_stand_in
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import single
from gradspec.laws.tensor.support._given import values_and_gradients
from gradspec.laws.tensor.support._graph import nodes_behind
from gradspec.laws.tensor.support._reference import reference
from gradspec.laws.tensor.support._written import line_of_the_user, tensors_in, with_memory

#: A line of the call that made a node, as torch keeps it.
_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def undefined(trial: Trial, *, is_single: bool = False) -> Finding | None:
    """Return the finding that a gradient is NaN where the value is finite; None where none is.

    What a spec declares to be NaN is so by its word.

    Args:
        trial: the call.
        is_single: whether it is that of a case in float64, where nothing is NaN, in float32.
    """
    values, given = values_and_gradients(trial.spec.function, trial)
    if not all(bool(t.isfinite().all()) for t in values.values()):
        return None
    right = {} if is_stand_in(trial.spec.surrogate) else values_and_gradients(reference(trial.spec), trial)[1]
    for name, mine in given.items():
        off = mine.isnan()
        if name in right:
            off &= ~right[name].isnan()
        if bool(off.any()):
            return _said(trial, name, mine, off, right.get(name), is_single=is_single)
    return None


def _said(trial: Trial, name: str, given: Tensor, off: Tensor, right: Tensor | None, *, is_single: bool) -> Finding:
    where = off.nonzero()[0].tolist()
    here, there = (" in float32", " in float64") if is_single else ("", "")
    expected = "a number" if right is None else f"{right[tuple(where)].item():.12g}"
    return broken(
        f"{name} is NaN{here} in {int(off.sum())} of {off.numel()} elements, and the value is finite",
        argument=f"{name}, {describe(given)}",
        index=str(where),
        got="nan",
        expected=f"{expected}{there}",
        rank=Rank.WRONG,
        reason=quietly(lambda: _made_by(trial)) or Reason(kind="nan", words="", of_function=True),
    )


def undefined_in_single(trial: Trial) -> Finding | None:
    """Return the finding that a gradient is NaN in float32 where the value is finite; None where none is."""
    inputs = Inputs.of(trial)
    wide = {n: t for n, t in inputs.values.items() if isinstance(t, Tensor) and t.dtype == torch.float64}
    low = Inputs({**inputs.values, **{name: single(t.detach()) for name, t in wide.items()}}, inputs.wrt)
    return undefined(replace(trial, case=replace(trial.case, args=low.args(), kwargs={})), is_single=True)


class _FirstNaN(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Notes the first operation within a backward pass that makes NaN of numbers, with its line.

    Of infinities, with what makes the first one of numbers.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.said, self._overflow = "", ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = with_memory(func)(*args, **(kwargs or {}))
        given = (args, tuple((kwargs or {}).values()))
        is_asked = not self.said and torch._C._current_graph_task_id() != -1
        if is_asked and _has(made, Tensor.isnan) and not _has(given, Tensor.isnan):
            self.said = _said_of(func)
            if self._overflow and _has(given, Tensor.isinf):
                self.said += f", of the infinity that {self._overflow}, makes"
        elif not self._overflow and _has(made, Tensor.isinf) and not _is_infinite(given):
            self._overflow = _said_of(func)
        return made


def _said_of(func: Any) -> str:
    return f"{str(func).rpartition('.')[0]}, {line_of_the_user()}"


def _is_infinite(given: Any) -> bool:
    """Whether an operation is given an infinity, or nothing that it could make one of."""
    numbers = (abs(one) for one in tree_leaves(given) if type(one) is float)
    return next(tensors_in(given), None) is None or _has(given, Tensor.isinf) or math.inf in numbers


def _has(value: Any, kind: Callable[[Tensor], Tensor]) -> bool:
    return any(bool(kind(t).any()) for t in tensors_in(value) if t.is_floating_point() or t.is_complex())


def _made_by(trial: Trial) -> Reason | None:
    """Return the first operation whose backward makes infinity or NaN of numbers, and the line that called it."""
    first: list[tuple[str, str, str]] = []

    def watch(node: Any, made: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        if not first and _are_finite(given) and not _are_finite(made):
            what = "NaN" if any(t.isnan().any() for t in made if isinstance(t, Tensor)) else "infinity"
            first.append((node.name(), what, _place("".join(node.metadata.get("traceback_", ())))))

    def watched(*args: Any) -> Any:
        y = trial.spec.function(*args)
        for node in nodes_behind(y):
            node.register_hook(partial(watch, node))
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            values_and_gradients(watched, trial)
    if not first:
        return None
    operation, what, place = first[0]
    of = operation.removesuffix("Backward")  # of a Function; an operation of torch has a number behind it
    words = f"the backward of {of}{f', called at {place},' if place else ''} makes {what} first"
    if of == operation.removesuffix("Backward") != operation and (inside := quietly(lambda: _line_inside(trial))):
        words += f": {inside}"
    return Reason(kind="nan", words=words, evidence={"operation": operation, "place": place}, of_function=True)


def _line_inside(trial: Trial) -> str:
    """Return which operation of a backward that somebody has written makes NaN first, and in which line."""
    with _FirstNaN() as mode:
        values_and_gradients(trial.spec.function, trial)
    return str(mode.said)


def _are_finite(tensors: tuple[Any, ...]) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors if isinstance(t, Tensor))


def _place(trace: str) -> str:
    """Return the last line of a trace within our call that is neither torch's nor ours, as "ops.py:9, in focal"."""
    lines: list[tuple[str, str, str]] = []
    for path, line, name in _LINE.findall(trace):
        if is_under_test(path):
            lines.append((path, line, name))
        elif is_of_gradspec(path):  # what stands before has called us: a command line, a test
            lines.clear()
    if not lines:
        return ""
    path, line, name = lines[-1]
    return f"{path.rpartition('/')[2]}:{line}, in {name}"
