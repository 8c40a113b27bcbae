"""Whether all gradients are right once what cuts the graph in one line, `detach()` or `.data`, is left out."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradspec._place import calling_frame
from gradspec.explain._bounded import Bounded
from gradspec.explain._cut import DATA, DETACH
from gradspec.explain._wrong import Wrong
from gradspec.law import Reason
from gradspec.laws.tensor.support._call import vjp
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, is_of_operator
from gradspec.laws.tensor.support._spying import within

#: Of how many lines it is asked.
_MOST = 16
_CUTS = dict.fromkeys(DETACH, "detach()") | dict.fromkeys(DATA, ".data")

Line = tuple[str, int, str]


class _LeftOut(TorchFunctionMode):
    """Calls without what cuts their graph in one line of the code under test."""

    def __init__(self, line: Line | None = None) -> None:
        super().__init__()
        self.line = line
        #: The lines with a cut, and what it is, in the order of their calls.
        self.seen: dict[Line, None] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (what := _CUTS.get(func)) is not None and (frame := calling_frame()) is not None:
            line = (frame.f_code.co_filename, frame.f_lineno, what)
            self.seen[line] = None
            if line == self.line and isinstance(args[0], Tensor):
                return args[0]
        return func(*args, **(kwargs or {}))


def of_a_cut(wrong: Wrong) -> Reason | None:
    """Whether all gradients are right without the cuts of one line."""
    behind = classes_behind(wrong.trial.spec.function(*wrong.inputs.args(wrong.inputs.leaves())))
    classes, seen = [cls for cls in behind if not is_of_operator(cls)], _LeftOut()
    _called(wrong, classes, seen)
    for line in list(seen.seen)[:_MOST]:
        got = quietly(lambda line=line: _called(wrong, classes, _LeftOut(line)))  # type: ignore[misc]
        if got is not None and wrong.is_mended(got):
            file, number, what = line
            said = f"right once {what} is left out ({Path(file).name}:{number})"
            return Reason(kind="cut", words=said, evidence={"by": what, "line": number})
    return None


def _called(wrong: Wrong, classes: list[type], mode: _LeftOut) -> dict[str, Tensor | None]:
    """Return the gradients; the mode is on in a backward, too, where torch turns it off."""
    with ExitStack() as stack:
        for cls in classes:
            stack.enter_context(within(cls, "backward", mode))
        with mode, Bounded(wrong.most_operations):
            return vjp(wrong.trial.spec.function, wrong.inputs, tuple(t.clone() for t in wrong.v))
