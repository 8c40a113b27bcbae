r"""Backward over one graph gives the same gradient each time: with v, with w, and with v again.

Why it matters: a Jacobian by rows, a gradient penalty and a second loss run one graph more than once.

What breaks it: noise drawn in backward, a value on ctx that backward changes, state that moves with each backward.

Remedy: keep what backward needs in forward, and leave it alone in backward.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor._compare import compare_all
from gradspec.laws.tensor._reference import reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    v, w = like(y, trial.seed), like(y, trial.seed + 1)
    likely = "backward draws noise, or changes what it finds on ctx"
    for turn, cotangent in (("first", v), ("second", w), ("third", v)):
        expected = vjp(reference(trial.spec), inputs, cotangent)  # first: the function may change the cotangent
        got = gradients(y, leaves, cotangent, retain_graph=True)
        finding = compare_all(trial, f"gradient of the {turn} backward over one graph", got, expected, likely=likely)
        if finding is not HOLDS:
            return finding
    return HOLDS


RETAINED_GRAPH = Law(
    name="retained_graph",
    family="protocol",
    statement=r"B(v),\, B(w),\, B(v) \text{ over one graph}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=("drifts_with_each_backward",),
)
