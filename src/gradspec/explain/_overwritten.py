"""Whether backward changes what forward keeps for it, and in which line: taken back, a second one gives the same."""

from __future__ import annotations

from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._written import Writes


def why_not_again(trial: Trial) -> Reason | None:
    """Return which operation of backward writes to memory that outlives it, if that is why another one differs."""
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    with Writes(keep=True) as writes:
        first = gradients(y, leaves, like(y, trial.seed), retain_graph=True)
    expected = {name: None if t is None else t.detach().clone() for name, t in first.items()}
    for write in reversed(writes.found):
        write.take_back()
    again = gradients(y, leaves, like(y, trial.seed), retain_graph=True)
    if not writes.found or compare_all(trial, "gradient", again, expected) is not HOLDS:
        return None
    operation, line = writes.found[0].operation, writes.found[0].line
    said = f"backward changes what forward keeps for it: {operation} ({line})"
    return Reason(kind="overwritten", words=said, evidence={"operation": operation, "line": line})
