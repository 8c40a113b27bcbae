r"""No tensor sits on ctx outside the saved ones.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: an argument or an output on ctx is not checked for later writes, leaks memory, and makes double
backward silently wrong. What forward computes itself stays there until the graph is gone, and hooks on saved tensors,
which move them off the device, do not see it.

What breaks it: `ctx.x = x`, `ctx.cache = [y]`.
The state of a generator may sit there, as that which torch's own checkpoint keeps.

Remedy: use `ctx.save_for_backward` and `ctx.save_for_forward`.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._generators import is_generator_state
from gradspec.laws.tensor.support._graph import nodes_behind, tensors_in
from gradspec.laws.tensor.support._memory import overlap
from gradspec.laws.tensor.support._passes import Pass, called, in_each_pass


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    return in_each_pass(trial, lambda way: _watch(trial, inputs, way))


def _watch(trial: Trial, inputs: Inputs, way: Pass) -> Finding:
    leaves = way.leaves(inputs)
    # Each is looked at before its backward pass, which lets go of a graph.
    for order in way.orders(called(trial, way, inputs, leaves), leaves, trial.seed):
        y = list(order.outputs.values())
        if (finding := _look(y, {"an argument": list(leaves.values()), "an output": y})) is not HOLDS:
            return finding
    return HOLDS


def _look(tensors: list[Tensor], watched: Mapping[str, list[Tensor]]) -> Finding:
    """Return the finding of a tensor on ctx: first of one that lies in watched memory."""
    found = []
    for node in nodes_behind(tuple(tensors)):
        for name, value in getattr(node, "__dict__", {}).items():  # of a custom Function: it is ctx too
            for tensor in (t for t in tensors_in(value) if not is_generator_state(t)):
                of = next((of for of, those in watched.items() if any(overlap(tensor, t) for t in those)), "")
                found.append((not of, name, of, tensor))
    if not found:
        return HOLDS
    _, name, of, tensor = min(found, key=lambda one: one[0])
    harm = {
        "an argument": "; a write to it before backward goes unnoticed",
        "an output": "; a write to it before backward goes unnoticed, and with its graph it makes a cycle",
        "": "",
    }[of]
    return broken(
        f"a tensor sits on ctx.{name}" + (f", and is {of}" if of else ""),
        argument=f"ctx.{name}",
        got=describe(tensor),
        expected="nothing but plain values",
        likely=f"the tensor was put on ctx instead of ctx.save_for_backward(...){harm}",
        rank=Rank.WRONG if of else Rank.WASTE,
    )


CTX_CLEAN = Law(
    name="ctx_clean",
    family="effects",
    scope=Scope.MEMORY,
    statement=r"\operatorname{ctx} \cap \text{tensors} = \text{saved}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
