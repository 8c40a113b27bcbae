r"""`torch.compile(fullgraph=True)` gives the same value and the declared gradient.

Why it matters: a compiled model with another gradient silently learns something else.

What breaks it: a Function that defines `jvp` and is not allowed in the graph; data-dependent Python in forward. Where
torch.compile breaks its graph there, and the gradient is right, that is a cost and no mistake.

Remedy: allow the class in the graph (`torch.compiler.allow_in_graph`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Trial, not_applicable, raised
from gradspec.laws.tensor.support._call import Inputs, fresh, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import on_spec_side
from gradspec.laws.tensor.support._transform import BREAKS, frozen, is_right_in_pieces, judge_run


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    torch._dynamo.reset()
    if not inputs.wrt:
        return _values(trial, inputs)
    way, function = f"torch.compile ({trial.profile.backend})", frozen(trial.spec.function, inputs)
    try:
        return judge_run(trial, inputs, way, torch.compile(function, fullgraph=True, backend=trial.profile.backend))
    except Exception as error:
        if not is_right_in_pieces(trial, inputs, way):
            raise
        return raised(error, BREAKS, rank=Rank.WASTE)


def _values(trial: Trial, inputs: Inputs) -> Finding:
    """Judge what a call without gradients gives, what an operator writes among it."""
    names = tuple(name for name, value in inputs.values.items() if isinstance(value, Tensor))
    if not names:
        return not_applicable("the call has no tensor")
    whole = frozen(trial.spec.function, Inputs(inputs.values, names))
    compiled = torch.compile(whole, fullgraph=True, backend=trial.profile.backend)
    got = outputs(compiled(*(fresh(inputs.values[name]) for name in names)))
    expected = outputs(on_spec_side("primal", trial.spec.primal, *inputs.args()))
    for mine, theirs in zip(got, expected, strict=True):
        what = f"value under torch.compile ({trial.profile.backend})"
        if (finding := compare(trial, what, mine, theirs)) is not HOLDS:
            return finding
    return HOLDS


COMPILE = Law(
    name="compile",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(F) = r",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compile",
)
