r"""Backward over one graph gives the same gradient each time: with v, with w, and with v again.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: a Jacobian by rows, a gradient penalty and a second loss run one graph more than once.

What breaks it: noise drawn in backward, a value on ctx that backward changes, state that moves with each backward.

Remedy: keep what backward needs in forward, and do not touch it in backward.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, vjp
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._passes import THROUGH_BACKWARD, Pass, called, copies, in_each_pass
from gradspec.laws.tensor.support._reference import plain_call


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    return in_each_pass(trial, lambda way: (_again if way is THROUGH_BACKWARD else _in_turn)(trial, inputs, way))


def _in_turn(trial: Trial, inputs: Inputs, way: Pass) -> Finding:
    leaves = way.leaves(inputs)
    y = called(trial, way, inputs, leaves)
    v, w = like(y, trial.seed), like(y, trial.seed + 1)
    for turn, cotangent in (("first", v), ("second", w), ("third", v)):
        expected = vjp(
            plain_call(trial.spec, inputs), inputs, cotangent
        )  # first: the function may change the cotangent
        got = gradients(y, leaves, cotangent, retain_graph=True)
        finding = compare_all(trial, f"gradient of the {turn} backward over one graph", got, expected)
        if finding is not HOLDS:
            return finding
    return HOLDS


def _again(trial: Trial, inputs: Inputs, way: Pass) -> Finding:
    """Compare the third of these gradients with the first, and so for the gradients of the gradient."""
    leaves = way.leaves(inputs)
    for number, order in enumerate(way.orders(called(trial, way, inputs, leaves), leaves, trial.seed), 1):
        v = order.cotangents
        w = {name: -2 * t.detach() for name, t in v.items()}
        first = order.differentiate(retain=True)
        expected = {name: None if t is None else t.detach().clone() for name, t in first.items()}
        order.differentiate(w, retain=True)
        got = order.differentiate(copies(v), retain=True)
        order.found = first
        what = f"gradient of the third backward of order {number} over one graph"
        if (finding := compare_all(trial, what, got, expected)) is not HOLDS:
            return finding
    return HOLDS


RETAINED_GRAPH = Law(
    name="retained_graph",
    family="protocol",
    statement=r"B(v),\, B(w),\, B(v) \text{ over one graph}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
