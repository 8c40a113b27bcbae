r"""Forward returns what the plain Python of the spec computes, and leaves its arguments as they are.

Why it matters: feedback is only as good as the result that it is about; a text that was changed on the way is judged
instead of the original.

What breaks it: a separator forgotten, a template filled twice, an argument whose data is assigned in `forward`.

Remedy: compute new data, and return it in a new Variable.
"""

from __future__ import annotations

from typing import Any

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken
from gradspec.laws.text.support._call import Inputs, replaced
from gradspec.text import Variable


def _check(trial: TextTrial) -> Finding:
    inputs = Inputs.of(trial)
    variables = {**inputs.leaves, **inputs.others}
    before = {place: (variable.data, variable.version) for place, variable in variables.items()}
    got = inputs.call(trial)
    expected = trial.spec.primal(*_data(trial.case.args), **_data(dict(trial.case.kwargs)))
    expected = expected if isinstance(expected, tuple) else (expected,)
    if len(got) != len(expected):
        return broken("forward returns another number of values", got=str(len(got)), expected=str(len(expected)))
    for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        data = _data(mine)
        if data != theirs or type(data) is not type(theirs):
            return broken(
                "forward returns something else", argument=f"output {number}", got=repr(data), expected=repr(theirs)
            )
    for place, variable in variables.items():
        if (variable.data, variable.version) != before[place]:
            return broken(
                "forward changes an argument",
                argument=f"`{place}`",
                got=repr(variable.data),
                expected=repr(before[place][0]),
            )
    return HOLDS


def _data(value: Any) -> Any:
    def data(variable: Variable) -> Any:
        return list(variable.data) if isinstance(variable.data, list) else variable.data

    return replaced(value, data)


FORWARD = Law(
    name="forward",
    family="text",
    statement=r"F(x) = f(x)",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
