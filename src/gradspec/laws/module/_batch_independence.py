r"""In evaluation the result for a row does not depend on the other rows of the batch.

Why it matters: a prediction that depends on the rest of the batch cannot be repeated.

What breaks it: statistics of the batch used in evaluation, a normalisation over the wrong dimension, a reshape that
mixes rows.

Remedy: use running statistics in evaluation, and reduce over every dimension but the first.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, Reason, not_applicable
from gradspec.laws.module.support._build import batch, beside_evaluation, inputs, rows, used
from gradspec.laws.tensor.support._compare import compare, is_one
from gradspec.laws.tensor.support._diagnosis import quietly


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.output is None:
        return not_applicable("the case declares no output of a row for each input")
    module, given = used(trial), inputs(trial)
    together = module(*given)
    for row in range(batch(given)):
        one = slice(row, row + 1)
        alone = module(*rows(given, one))
        finding = compare(trial, f"row {row} alone", alone, together[one])
        if finding is not HOLDS:
            found = beside_evaluation(trial, module, finding)
            same = None if found.follows else quietly(lambda: module(*_of_row(given, row))[one])  # noqa: B023  # called at once
            return found if same is None else _with_reason(trial, found, row, same, alone, together[one])
    return HOLDS


def _of_row(given: tuple[Any, ...], row: int) -> tuple[Any, ...]:
    """Return as many rows, each of them that one."""
    return tuple(v[[row] * len(v)] if isinstance(v, Tensor) and v.ndim else v for v in given)


def _with_reason(trial: ModuleTrial, finding: Finding, row: int, same: Tensor, alone: Tensor, among: Tensor) -> Finding:
    """Say whether a row depends on the numbers of the others or on how many they are: it is given beside copies of it.

    The digits of a row, as those of a bias alone, say nothing then.
    """
    if is_one({"": same}, {"": alone}, but={"": among}):
        said = f"it depends on the numbers of the other rows: beside copies of row {row} it is as alone"
    elif is_one({"": same}, {"": among}, but={"": alone}):
        said = f"it depends on how many rows there are, not on their numbers: beside copies of row {row} it is the same"
    else:
        return finding
    return finding.because(Reason(kind="other rows", words=said))


BATCH_INDEPENDENCE = Law(
    name="batch_independence",
    family="modules",
    statement=r"F(x)_i = F(x_i)",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    requires=("batch_size",),
)
