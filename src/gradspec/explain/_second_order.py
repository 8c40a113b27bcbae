"""Why a second derivative is wrong, as far as the others show it, and what forward keeps for backward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack

import torch
from torch import Tensor

from gradspec.explain._cut import EVERY, Without
from gradspec.explain._inner import factor_of, of_inner_functions
from gradspec.explain._kept import CUT, KEPT, keeps_an_intermediate, why_cut
from gradspec.law import HOLDS, Finding, Rank, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import compare, describe
from gradspec.laws.tensor.support._cut_by_detach import CUT_IN_SURROGATE, moves_what_is_detached
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind
from gradspec.laws.tensor.support._one_output import judge_each_output
from gradspec.laws.tensor.support._penalty import COTANGENT, penalty
from gradspec.laws.tensor.support._reference import is_stand_in, reference
from gradspec.laws.tensor.support._slope_of_backward import ALONG, by_autograd, judge_by_differences
from gradspec.laws.tensor.support._spying import within

#: What is said of one that is right without what cuts the graph of its backward.
PARTLY = Reason(
    kind="partly cut",
    words="right once .data, detach() and no_grad() are left out of backward, where they cut the graph",
)
#: The message for a derivative that is NaN or infinite.
INFINITE = Reason(
    kind="infinite slope",
    words="backward computes what has an infinite slope here: a root, a power or a norm of 0, or a division by it",
)
UNDEFINED = Reason(kind="infinite slope", words="0 times infinity in backward's graph")
#: The derivatives of each order by name.
Derivatives = Mapping[str, Tensor | None]


def why_second_order(trial: Trial, finding: Finding) -> Reason | None:
    """Return why the derivative that a finding of the law `second_order` is about is wrong, if it is shown."""
    inputs = Inputs.of(trial)
    if is_stand_in(trial.spec.surrogate):
        return _by_differences(trial, inputs, finding)
    if moves_what_is_detached(trial, inputs):
        return CUT_IN_SURROGATE
    got, expected = (penalty(f, inputs, trial.seed).found for f in (trial.spec.function, reference(trial.spec)))
    for name, right in expected.items():
        if finding.argument in (name, f"{name}, {describe(got[name] if right is None else right)}"):
            return _of_an_order(trial, name, got, expected)
    return None


def _by_differences(trial: Trial, inputs: Inputs, finding: Finding) -> Reason | None:
    """Return why a derivative is not the numerical one, from those of all that moves."""
    exact = by_autograd(trial, inputs)
    name = next((name for name in exact if finding.argument == ALONG.format(name)), "")
    if not name:
        return None
    derivative = exact[name]
    is_linear = name != COTANGENT and exact[COTANGENT] is not None
    cut = why_cut(trial, inputs) if is_linear else CUT
    if derivative is None:
        return cut
    if math.isnan(derivative):
        return UNDEFINED
    if derivative == 0 or cut is KEPT:
        return cut
    with ExitStack() as stack:
        _leave_out_cuts(stack, trial, inputs)
        return PARTLY if quietly(lambda: judge_by_differences(trial, inputs)) is HOLDS else None


def _of_an_order(trial: Trial, name: str, got: Derivatives, expected: Derivatives) -> Reason | None:
    of_one = judge_each_output(trial, Inputs.of(trial))
    if of_one is not HOLDS and of_one.rank != Rank.WASTE:
        # One gradient of backward may be asked for by itself, too.
        return of_one.reason or Reason(kind="one output", words=of_one.likely or of_one.message)
    linear = f"second derivative with respect to {COTANGENT}"
    mine, right = got[name], expected[name]
    others = of_inner_functions(trial, name, mine, right)

    def is_cut() -> bool:
        return bool(quietly(lambda: _is_right(trial, _without_cuts(trial, name, others.classes), right)))

    if others.reason is not None:
        # A gradient of zero may be right.
        return PARTLY if "factor" not in others.reason.evidence and is_cut() else others.reason
    if mine is None or not bool(mine.any()):
        return why_cut(trial, Inputs.of(trial)) if name.startswith("second") and got[linear] is not None else CUT
    if bool(mine.isnan().any()):
        return INFINITE
    if is_cut():
        return PARTLY
    if name.startswith("second") and name != linear and _is_right(trial, got[linear], expected[linear]):
        if not others.has_term and quietly(lambda: keeps_an_intermediate(trial, Inputs.of(trial))):
            return KEPT  # what is left of a derivative may be a factor of it, as of a square
        times = None if right is None else factor_of(trial, name, mine, right, rest=torch.zeros_like(right))
        if times is not None:
            return Reason(kind="factor", words=f"off by the factor {times:.6g}", evidence={"factor": times})
    return None


def _without_cuts(trial: Trial, name: str, others: frozenset[type]) -> Tensor | None:
    """Return a derivative of the function whose backward leaves out what would cut its graph."""
    inputs = Inputs.of(trial)
    with ExitStack() as stack:
        _leave_out_cuts(stack, trial, inputs, others)
        return penalty(trial.spec.function, inputs, trial.seed).found[name]


def _leave_out_cuts(stack: ExitStack, trial: Trial, inputs: Inputs, others: frozenset[type] = frozenset()) -> None:
    for cls in others.union(classes_behind(trial.spec.function(*inputs.args(inputs.leaves())))):
        stack.enter_context(within(cls, "backward", Without(EVERY)))


def _is_right(trial: Trial, got: Tensor | None, expected: Tensor | None) -> bool:
    return compare(trial, "second derivative", got, expected, is_derivative=True) is HOLDS
