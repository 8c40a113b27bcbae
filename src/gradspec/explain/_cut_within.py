"""Whether all gradients are right once what cuts the graph in one line, or in all, is left out: `detach()`, `.data`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradspec._place import calling_frame
from gradspec.explain._cut import DATA, DETACH, NO_GRAD, gradient_of, is_stopped, uncut
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator
from gradspec.laws.tensor.support._spying import within

#: Of how many lines it is asked.
_MOST = 16
_CUTS = dict.fromkeys(DETACH, "detach()") | dict.fromkeys(DATA, ".data") | dict.fromkeys(NO_GRAD, "no_grad()")

Line = tuple[str, int, str]


class _LeftOut(TorchFunctionMode):
    """Calls without what cuts their graph in one line of the code under test."""

    def __init__(self, lines: Sequence[Line] = ()) -> None:
        super().__init__()
        self.lines = lines
        #: The lines with a cut, and what it is, in the order of their calls.
        self.seen: dict[Line, None] = {}
        # Those that switch gradients on: they end with switching them off again.
        self._on = set[Line]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (what := _CUTS.get(func)) is not None and (frame := calling_frame()) is not None:
            line = (frame.f_code.co_filename, frame.f_lineno, what)
            if func in NO_GRAD and args[0] and line not in self.seen:
                self._on.add(line)
            if line not in self._on:
                self.seen[line] = None
            if line in self.lines:
                return uncut(args[0])
        return func(*args, **(kwargs or {}))


def of_a_cut(wrong: Wrong) -> Reason | None:
    """Whether all gradients are right without the cuts of one line."""
    behind = classes_behind(wrong.trial.spec.function(*wrong.inputs.args(wrong.inputs.leaves())))
    classes, seen = [cls for cls in behind if not is_of_operator(cls)], _LeftOut()
    _called(wrong, classes, seen)
    lines = list(seen.seen)[:_MOST]
    for some in [*([line] for line in lines), *([lines] if len(lines) > 1 else [])]:
        got = quietly(lambda some=some: _called(wrong, classes, _LeftOut(some)))  # type: ignore[misc]
        if got is not None and wrong.is_mended(got):
            what = " and ".join(dict.fromkeys(what for _, _, what in some))
            places = ", ".join(dict.fromkeys(f"{Path(file).name}:{number}" for file, number, _ in some))
            said = f"right once {what} is left out ({places})"
            return Reason(kind="cut", words=said, evidence={"by": what, "line": some[0][1]})
    return None


def stopped_at(trial: Trial, inputs: Inputs, name: str, gradient: Tensor) -> str:
    """Return in which lines a part of a gradient is stopped: without one of them another gradient arrives."""
    seen = _LeftOut()
    with seen:
        gradient_of(trial, inputs, name)
    lines = list(seen.seen)[:_MOST]
    found = [line for line in lines if is_stopped(trial, inputs, name, gradient, _LeftOut([line]))]
    return ", ".join(f"{what} ({Path(file).name}:{number})" for file, number, what in found)


def _called(wrong: Wrong, classes: list[type], mode: _LeftOut) -> dict[str, Tensor | None]:
    """Return the gradients; the mode is on in a backward, too, where torch turns it off."""
    with ExitStack() as stack:
        for cls in classes:
            stack.enter_context(within(cls, "backward", mode))
        with mode, wrong.bounded():
            return vjp(wrong.trial.spec.function, wrong.inputs, tuple(t.clone() for t in wrong.v))
