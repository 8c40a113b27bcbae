"""Why a derivative of a gradient is wrong, as far as the other derivatives of that order show it."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gradspec.law import HOLDS, Rank, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import nodes_behind, tensors_in
from gradspec.laws.tensor.support._memory import overlap
from gradspec.laws.tensor.support._one_output import judge_each_output
from gradspec.laws.tensor.support._penalty import COTANGENT

#: What is said of a derivative that is not there.
CUT = "backward is cut from the graph: look for .data, detach(), numpy, or an intermediate kept on ctx"
#: What is said where backward is right in its cotangent, and not in the arguments, and keeps what forward computes.
KEPT = "backward uses a result of forward, which knows no graph there: save the arguments, and compute it in backward"
#: What is said of one that keeps its arguments only.
PARTLY = "a term is missing: .data or detach() in backward, or a Function within it whose own backward lacks the term"
#: What is said of a derivative that is no number.
INFINITE = "backward computes what has an infinite slope here: a root, a power or a norm of 0, or a division by it"
#: The derivatives of each order by name.
Derivatives = Mapping[str, Tensor | None]


def why_wrong_order(trial: Trial, name: str, got: Derivatives, expected: Derivatives) -> str:
    """Return why a derivative is wrong, if it is."""
    of_one = judge_each_output(trial, Inputs.of(trial))
    if of_one is not HOLDS and of_one.rank != Rank.WASTE:
        return of_one.likely or of_one.message  # of the gradients of backward, too, one may be asked for alone
    if (mine := got[name]) is None or not bool(mine.any()):
        return CUT
    if bool(mine.isnan().any()):
        return INFINITE
    linear = f"second derivative with respect to {COTANGENT}"
    if name.startswith("second") and name != linear and compare(trial, name, got[linear], expected[linear]) is HOLDS:
        keeps = quietly(lambda: _keeps_an_intermediate(trial, Inputs.of(trial)))
        return {True: KEPT, False: PARTLY}.get(keeps, "")  # nothing is said where what is kept cannot be read
    return ""


def _keeps_an_intermediate(trial: Trial, inputs: Inputs) -> bool:
    """Whether a Function keeps a number of its forward that is no argument, and that no graph leads to."""
    leaves = inputs.leaves()
    y = trial.spec.function(*inputs.args(leaves))
    known = [t for t in (*inputs.args(leaves), *leaves.values()) if isinstance(t, Tensor)]
    for node in nodes_behind(y):
        if not hasattr(node, "_forward_cls"):
            continue
        kept = (*tensors_in(tuple(node.saved_tensors)), *tensors_in(dict(node.__dict__)))
        if any(differentiable(t) and not t.requires_grad and not any(overlap(t, a) for a in known) for t in kept):
            return True
    return False
