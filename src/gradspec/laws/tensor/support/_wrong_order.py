"""Why a derivative of a gradient is wrong, as far as the other derivatives of that order show it."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gradspec.law import HOLDS, Rank, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._kept import CUT, KEPT, keeps_an_intermediate, why_cut
from gradspec.laws.tensor.support._one_output import judge_each_output
from gradspec.laws.tensor.support._penalty import COTANGENT

#: What is said of one that keeps its arguments only.
PARTLY = Reason(
    kind="partly cut",
    words="a term is missing: .data or detach() in backward, or a Function within it whose own backward lacks the term",
)
#: What is said of a derivative that is no number.
INFINITE = Reason(
    kind="infinite slope",
    words="backward computes what has an infinite slope here: a root, a power or a norm of 0, or a division by it",
)
#: The derivatives of each order by name.
Derivatives = Mapping[str, Tensor | None]


def why_wrong_order(trial: Trial, name: str, got: Derivatives, expected: Derivatives) -> Reason | None:
    """Return why a derivative is wrong, if it is."""
    of_one = judge_each_output(trial, Inputs.of(trial))
    if of_one is not HOLDS and of_one.rank != Rank.WASTE:
        # Of the gradients of backward, too, one may be asked for alone.
        return of_one.reason or Reason(kind="one output", words=of_one.likely or of_one.message)
    linear = f"second derivative with respect to {COTANGENT}"
    if (mine := got[name]) is None or not bool(mine.any()):
        return why_cut(trial, Inputs.of(trial)) if name.startswith("second") and got[linear] is not None else CUT
    if bool(mine.isnan().any()):
        return INFINITE
    if name.startswith("second") and name != linear and _is_right(trial, got[linear], expected[linear]):
        keeps = quietly(lambda: keeps_an_intermediate(trial, Inputs.of(trial)))
        return {True: KEPT, False: PARTLY}.get(keeps)  # nothing is said where what is kept cannot be read
    return None


def _is_right(trial: Trial, got: Tensor | None, expected: Tensor | None) -> bool:
    return compare(trial, "second derivative", got, expected, is_derivative=True) is HOLDS
