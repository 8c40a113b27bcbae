r"""A call leaves the process as it found it: default dtype and device, grad mode, threads, torch itself, the screen.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: a setting that one function changes for the whole process causes errors elsewhere, and what it prints
appears in the output of a program that did not ask for it.

What breaks it: `torch.set_default_dtype` in forward, grad mode switched without a context manager, a patch of
`torch.nn.functional`, a forgotten `print`.

Remedy: give dtype and device to each call, use the context managers, and raise or warn instead of printing.
"""

from __future__ import annotations

from gradspec._process_state import Surroundings, listening
from gradspec.law import HOLDS, Finding, Law, Trial, broken
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._passes import Pass, called, in_each_pass

NOT_PUT_BACK = "it is set and not put back: give dtype and device to each call, or use a context manager"


def _check(trial: Trial) -> Finding:
    return in_each_pass(trial, lambda way: _watch(trial, way))


def _watch(trial: Trial, way: Pass) -> Finding:
    inputs = Inputs.of(trial)
    leaves = way.leaves(inputs)
    before = Surroundings.now()
    with listening() as heard:
        try:
            y = called(trial, way, inputs, leaves)
            moved = [f"forward: {what}" for what in before.restore()]
            way.backward(y, leaves, trial.seed)
        finally:
            late = before.restore()
    moved += [f"backward: {what}" for what in late]
    if text := heard.getvalue().strip():
        moved.append(f"it prints {text[:80]!r}{'…' if len(text) > 80 else ''}")
    return broken("; ".join(moved), likely="" if text else NOT_PUT_BACK) if moved else HOLDS


GLOBAL_STATE = Law(
    name="global_state",
    family="effects",
    statement=r"\text{process}_{\text{after}} = \text{process}_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
