"""Why a second backward over one graph gives another gradient: what backward changes, and in which line."""

from __future__ import annotations

from torch import Tensor

from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._written import Write, Writes, storage_of

#: By the name of an argument.
_Gradients = dict[str, Tensor | None]


def why_not_again(trial: Trial) -> Reason | None:
    """Return what backward changes, if the first pass gives the same over each new graph and a later one does not."""
    inputs = Inputs.of(trial)
    _, expected, again = _twice(trial, inputs)
    if compare_all(trial, "gradient", again, expected) is HOLDS:
        return None  # what is wrong is wrong in the first pass, or it is the cotangent that was written to
    if compare_all(trial, "gradient", vjp(trial.spec.function, inputs, seed=trial.seed), expected) is not HOLDS:
        return None
    kept, expected, again = _twice(trial, inputs, takes_back=True)
    if not kept or compare_all(trial, "gradient", again, expected) is not HOLDS:
        return Reason(kind="on ctx", words="the same over a new graph: backward changes what it finds on ctx")
    said = f"backward changes what forward keeps for it: {kept[0].operation} ({kept[0].line})"
    evidence = {"operation": kept[0].operation, "line": kept[0].line}
    return Reason(kind="overwritten", words=said, evidence=evidence)


def _twice(trial: Trial, inputs: Inputs, *, takes_back: bool = False) -> tuple[list[Write], _Gradients, _Gradients]:
    """Return what a pass writes beside its cotangent, and the gradients of two passes over a graph, for alike ones."""
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    v = like(y, trial.seed)
    with Writes(keep=True) as writes:
        found = gradients(y, leaves, v, retain_graph=True)
    first = {name: None if t is None else t.detach().clone() for name, t in found.items()}
    kept = [write for write in writes.found if write.storage not in {storage_of(t) for t in v}]
    for write in reversed(kept) if takes_back else ():
        write.take_back()
    return kept, first, gradients(y, leaves, like(y, trial.seed), retain_graph=True)
