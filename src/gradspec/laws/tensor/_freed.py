r"""The output dies with its last reference, without the garbage collector.

Why it matters: an activation that waits for the collector is memory that a training step does not have.

What breaks it: the output kept on ctx as an attribute: output, graph node and ctx hold each other.

Remedy: keep it with `ctx.save_for_backward`, which makes no cycle.
"""

from __future__ import annotations

import gc
import weakref

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable
from gradspec.laws.tensor._call import Inputs, outputs


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    collecting = gc.isenabled()
    gc.disable()
    try:
        y = outputs(trial.spec.function(*inputs.args(inputs.leaves())))
        references = [weakref.ref(t) for t in y]
        del y
        alive = sum(reference() is not None for reference in references)
    finally:
        if collecting:
            gc.enable()
    if not alive:
        return HOLDS
    return broken(
        f"{alive} of {len(references)} outputs outlive their last reference",
        likely="the output sits on ctx outside save_for_backward: a reference cycle",
    )


FREED = Law(
    name="freed",
    family="effects",
    statement=r"\operatorname{refs}(y) = 0 \Rightarrow y \text{ is freed}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=("output_on_ctx",),
)
