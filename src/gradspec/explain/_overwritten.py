"""Why a second backward over one graph gives another gradient: what backward changes, and in which line."""

from __future__ import annotations

from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._written import Writes, storage_of


def why_not_again(trial: Trial) -> Reason | None:
    """Return what backward changes, if the first pass gives the same over each new graph and a later one does not."""
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    v = like(y, trial.seed)
    with Writes(keep=True) as writes:
        first = gradients(y, leaves, v, retain_graph=True)
    expected = {name: None if t is None else t.detach().clone() for name, t in first.items()}
    if compare_all(trial, "gradient", vjp(trial.spec.function, inputs, seed=trial.seed), expected) is not HOLDS:
        return None
    kept = [write for write in writes.found if write.storage not in {storage_of(t) for t in v}]
    for write in reversed(kept):
        write.take_back()
    again = gradients(y, leaves, like(y, trial.seed), retain_graph=True)
    if not kept or compare_all(trial, "gradient", again, expected) is not HOLDS:
        return Reason(kind="on ctx", words="the same over a new graph: backward changes what it finds on ctx")
    said = f"backward changes what forward keeps for it: {kept[0].operation} ({kept[0].line})"
    evidence = {"operation": kept[0].operation, "line": kept[0].line}
    return Reason(kind="overwritten", words=said, evidence=evidence)
