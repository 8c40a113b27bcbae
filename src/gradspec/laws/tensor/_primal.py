r"""Forward computes the primal.

Why it matters: every other law speaks about the derivative of a map; this one says that the map is the right one.

What breaks it: a wrong branch, a wrong reduction, a result in another dtype.

Remedy: change forward, or, if forward is right, the primal of the spec.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, shown
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import on_spec_side

DEFAULT = "a tensor is made in the default dtype: give the dtype of the argument (x.new_zeros(...), dtype=x.dtype)"


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    try:
        got = outputs(trial.spec.function(*inputs.args()))
    except Exception as error:
        return Finding(status=Status.ERROR, message=f"the case raised {shown(error)}")
    if len(got) != len(expected):
        return broken("forward returns another number of outputs", got=str(len(got)), expected=str(len(expected)))
    for k, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        what = "value" if len(got) == 1 else f"output {k}"
        if (finding := compare(trial, what, mine, theirs)) is not HOLDS:
            return (
                replace(finding, likely=DEFAULT) if _of_the_default_dtype(trial, inputs, k, mine, theirs) else finding
            )
    return HOLDS


def _of_the_default_dtype(trial: Trial, inputs: Inputs, place: int, got: Any, expected: Any) -> bool:
    """Whether an output follows the default dtype, and is right where that is the dtype that it should have."""
    before = torch.get_default_dtype()
    if not (isinstance(expected, Tensor) and expected.is_floating_point() and got.dtype == before != expected.dtype):
        return False
    torch.set_default_dtype(expected.dtype)
    try:
        return bool(outputs(trial.spec.function(*inputs.args()))[place].dtype == expected.dtype)
    except Exception:
        return False
    finally:
        torch.set_default_dtype(before)


PRIMAL = Law(
    name="primal",
    family="values",
    statement=r"F(x) = p(x)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    specimens=(
        "wrong_value",
        "returns_twice",
    ),
)
