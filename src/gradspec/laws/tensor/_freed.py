r"""Outputs are freed with their last reference; arguments are too, though perhaps only by the garbage collector.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: an activation that waits for the collector, or that a list keeps, is memory that a training step does
not have.

What breaks it: the output kept on ctx as an attribute: output, graph node and ctx hold each other. Or a list, a cache
or a global that each call adds its tensors to.

Remedy: keep it with `ctx.save_for_backward`, which makes no cycle; keep numbers or copies for a log, not the tensors.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

from torch import Tensor

from gradspec._scope import Scope
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


#: What keeps a tensor that no cycle does.
_HELD = "a class, a list, a cache or a global that each call adds its tensors to"


@dataclass(frozen=True)
class _Watched:
    """Weak references to what a pass made and was given."""

    made: list[weakref.ref[Tensor]]
    given: dict[str, weakref.ref[Tensor]]


def _judged(way: Pass, watched: _Watched) -> Finding:
    if alive := sum(reference() is not None for reference in watched.made):
        made = "outputs" if way.orders_of == 1 else "outputs and gradients"
        gc.collect()  # which frees a cycle, and nothing that is held
        is_held = any(reference() is not None for reference in watched.made)
        return broken(
            f"{alive} of {len(watched.made)} {made} outlive their last reference",
            likely=_HELD if is_held else "the output sits on ctx outside save_for_backward: a reference cycle",
        )
    if any(reference() is not None for reference in watched.given.values()):
        gc.collect()  # a module that was made for the call is a cycle, and holds its parameters; a list stays
    if kept := [name for name, reference in watched.given.items() if reference() is not None]:
        return broken(
            f"`{kept[0]}` outlives the call and its graph",
            argument=f"`{kept[0]}`",
            likely=_HELD,
        )
    return HOLDS


def _made(trial: Trial, inputs: Inputs, way: Pass) -> _Watched:
    leaves = way.leaves(inputs)
    given = {name: weakref.ref(leaf) for name, leaf in leaves.items()}
    y = called(trial, way, inputs, leaves)
    if way.orders_of == 1:
        return _Watched([weakref.ref(t) for t in y], given)
    made = [weakref.ref(t) for order in way.orders(y, leaves, trial.seed) for t in order.outputs.values()]
    return _Watched(made, given)


FREED = Law(
    name="freed",
    family="effects",
    scope=Scope.MEMORY,
    statement=r"\operatorname{refs}(y) = 0 \Rightarrow x, y \text{ are freed}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
