r"""In evaluation the result for a row does not depend on the other rows of the batch.

Why it matters: a prediction that depends on the rest of the batch cannot be repeated.

What breaks it: statistics of the batch used in evaluation, a normalisation over the wrong dimension, a reshape that
mixes rows.

Remedy: use running statistics in evaluation, and reduce over every dimension but the first.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, not_applicable
from gradspec.laws.module.support._build import batch, beside_evaluation, inputs, rows, used
from gradspec.laws.tensor.support._compare import compare


def _check(trial: ModuleTrial) -> Finding:
    if trial.case.output is None:
        return not_applicable("the case declares no output of a row for each input")
    module, given = used(trial), inputs(trial)
    together = module(*given)
    for row in range(batch(given)):
        one = slice(row, row + 1)
        finding = compare(trial, f"row {row} alone", module(*rows(given, one)), together[one])
        if finding is not HOLDS:
            return beside_evaluation(trial, module, finding)
    return HOLDS


BATCH_INDEPENDENCE = Law(
    name="batch_independence",
    family="modules",
    statement=r"F(x)_i = F(x_i)",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    requires=("batch_size",),
)
