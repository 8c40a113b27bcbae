r"""A call leaves the process as it found it: default dtype and device, grad mode, threads, torch itself, the screen.

Why it matters: what one function changes for everybody is an error in a place where nobody looks for it, and what it
prints lands in the output of a program that did not ask.

What breaks it: `torch.set_default_dtype` in forward, grad mode switched without a context manager, a patch of
`torch.nn.functional`, a forgotten `print`.

Remedy: give dtype and device to each call, use the context managers, and raise or warn instead of printing.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, broken
from gradspec.laws.tensor._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor._surroundings import Surroundings, listening


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    before = Surroundings.now()
    with listening() as heard:
        try:
            y = outputs(trial.spec.function(*inputs.args(leaves)))
            moved = [f"forward: {what}" for what in before.restore()]
            if leaves:
                gradients(y, leaves, like(y, trial.seed))
        finally:
            late = before.restore()
    moved += [f"backward: {what}" for what in late]
    if text := heard.getvalue().strip():
        moved.append(f"it prints {text[:80]!r}{'…' if len(text) > 80 else ''}")
    return broken("; ".join(moved)) if moved else HOLDS


GLOBAL_STATE = Law(
    name="global_state",
    family="effects",
    statement=r"\text{process}_{\text{after}} = \text{process}_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=("changes_the_default_dtype", "prints", "patches_torch"),
)
