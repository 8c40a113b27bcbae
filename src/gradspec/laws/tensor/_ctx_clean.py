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

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, differentiable, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._generators import is_generator_state
from gradspec.laws.tensor.support._graph import nodes_behind, tensors_in
from gradspec.laws.tensor.support._memory import overlap
from gradspec.laws.tensor.support._passes import Pass, called, in_each_pass

#: What autograd says of a tensor that it has saved and that was written to.
_WRITTEN = "modified by an inplace operation"


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
        watched = {"an argument": list(leaves.values()), "an output": y}
        finding = _look(y, watched)
        if finding.rank == Rank.WRONG and (inner := _look(y, watched, but_graphs=True)).rank != Rank.WRONG:
            finding = inner if _is_harmless(trial, inputs) else finding
        if finding is not HOLDS:
            return finding
    return HOLDS


def _is_harmless(trial: Trial, inputs: Inputs) -> bool:
    """Whether a write to the arguments and the outputs before backward raises, or changes no gradient.

    A graph of its own that a function keeps on ctx notices a write to what it has saved.
    """
    right = vjp(trial.spec.function, inputs, seed=trial.seed)
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    v = like(y, trial.seed)
    with torch.no_grad():
        for tensor in filter(differentiable, (*leaves.values(), *y)):
            tensor.detach().add_(1)
    try:
        got = gradients(y, leaves, v)
    except RuntimeError as error:
        return _WRITTEN in str(error)
    pairs = zip(got.values(), right.values(), strict=True)
    return all(a is b if a is None or b is None else torch.equal(a, b) for a, b in pairs)


def _look(tensors: list[Tensor], watched: Mapping[str, list[Tensor]], *, but_graphs: bool = False) -> Finding:
    """Return the finding of a tensor on ctx: first of one that lies in watched memory.

    Args:
        tensors: the outputs.
        watched: what must not sit on ctx, by what it is called.
        but_graphs: whether a tensor of a graph that is kept there counts as any other one.
    """
    found = []
    for node in nodes_behind(tuple(tensors)):
        for name, value in getattr(node, "__dict__", {}).items():  # of a custom Function: it is ctx too
            for tensor in (t for t in tensors_in(value) if not is_generator_state(t)):
                is_inner = but_graphs and tensor.requires_grad and all(tensor is not t for t in tensors)
                within = {} if is_inner else watched
                of = next((of for of, those in within.items() if any(overlap(tensor, t) for t in those)), "")
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
