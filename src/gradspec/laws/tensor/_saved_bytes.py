r"""A call keeps no more for its backward pass, beyond its arguments and outputs, than the spec declares.

Each storage counts once: those of saved tensors, of any operation in the graph, and those of tensors on ctx.

Why it matters: memory that is kept from forward to backward decides which batch fits.

What breaks it: a copy or a mask in full precision that is saved although a few numbers would do, a view of a large
buffer, logits that are kept to save a product.

Remedy: save small tensors and compute the rest again in backward, or declare the memory: `saved=Saved(...)`.
"""

from __future__ import annotations

import weakref

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._graph import nodes_behind, tensors_in
from gradspec.laws.tensor.support._reference import on_spec_side


def _check(trial: Trial) -> Finding:
    inputs, declared = Inputs.of(trial), trial.spec.saved
    if declared is None:
        return not_applicable("the spec declares no bound")
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    most = int(on_spec_side("bound on what is saved", declared.bytes, *inputs.args()))
    kept = _kept(trial, inputs)
    total = sum(tensor.untyped_storage().nbytes() for tensor in kept)
    if total <= most:
        return HOLDS
    largest = max(kept, key=lambda tensor: tensor.untyped_storage().nbytes())
    return broken(
        f"{total:,} bytes are kept for backward, and the spec declares at most {most:,}",
        got=", ".join(map(describe, kept)),
        expected=f"at most {most:,} bytes: {declared.text}",
        likely=f"the largest storage kept is that of {describe(largest)}",
        rank=Rank.WASTE,
    )


def _kept(trial: Trial, inputs: Inputs) -> list[Tensor]:
    """Return a tensor for each storage that is kept from forward to backward, and is none of the caller's."""
    references: list[weakref.ref[Tensor]] = []

    def pack(tensor: Tensor) -> Tensor:
        # An alias, for an output that its own graph keeps would never be freed. What only forward keeps dies with it.
        alias = tensor.detach()
        references.append(weakref.ref(alias))
        return alias

    args = inputs.args(inputs.leaves())
    with saved_tensors_hooks(pack, lambda alias: alias):
        y = outputs(trial.spec.function(*args))
    saved = [reference() for reference in references]
    on_ctx = (tensor for node in nodes_behind(y) for tensor in tensors_in(getattr(node, "__dict__", {})))
    known = {_place(tensor) for tensor in tensors_in([*args, *y])}
    found = {_place(tensor): tensor for tensor in (*saved, *on_ctx) if tensor is not None}
    return [tensor for place, tensor in found.items() if place not in known]


def _place(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


SAVED_BYTES = Law(
    name="saved_bytes",
    family="effects",
    scope=Scope.MEMORY,
    statement=r"\operatorname{bytes}(\text{saved} \setminus \{x, y\}) \le \text{declared}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    needs_spec=True,
)
