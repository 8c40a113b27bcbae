r"""The output dies with its last reference, without the garbage collector.

It is watched in a plain pass, beside a tangent, and where backward is differentiated, as far as these are promised.

Why it matters: an activation that waits for the collector is memory that a training step does not have.

What breaks it: the output kept on ctx as an attribute: output, graph node and ctx hold each other.

Remedy: keep it with `ctx.save_for_backward`, which makes no cycle.
"""

from __future__ import annotations

import gc
import weakref

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._passes import Pass, called, in_each_pass


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    collecting = gc.isenabled()
    gc.disable()
    try:
        # Judged once the tangents are gone: torch's own forward mode makes a cycle of the output of ReLU, its tangent
        # and the graph of the tangent, and cuts it there.
        return in_each_pass(trial, lambda way: _made(trial, inputs, way), _judged)
    finally:
        if collecting:
            gc.enable()


def _judged(way: Pass, references: list[weakref.ref[Tensor]]) -> Finding:
    alive = sum(reference() is not None for reference in references)
    if not alive:
        return HOLDS
    return broken(
        f"{alive} of {len(references)} {'outputs' if way.orders_of == 1 else 'outputs and gradients'} outlive their "
        f"last reference",
        likely="the output sits on ctx outside save_for_backward: a reference cycle",
    )


def _made(trial: Trial, inputs: Inputs, way: Pass) -> list[weakref.ref[Tensor]]:
    """Return weak references to all that a pass makes, of which nothing else is left."""
    leaves = way.leaves(inputs)
    y = called(trial, way, inputs, leaves)
    if way.orders_of == 1:
        return [weakref.ref(t) for t in y]
    return [weakref.ref(t) for order in way.orders(y, leaves, trial.seed) for t in order.outputs.values()]


FREED = Law(
    name="freed",
    family="effects",
    statement=r"\operatorname{refs}(y) = 0 \Rightarrow y \text{ is freed}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    specimens=(
        "output_on_ctx",
        "keeps_its_output_through_backward",
        "keeps_its_output_beside_a_tangent",
    ),
)
