r"""Forward writes to no memory that was there before, and backward writes only to what is declared.

In the audit of a module in training, forward may write to its buffers and frozen parameters; and to the buffers of a
module in training that is an argument, or is behind one, as a function that checkpoints is given one. Backward may
write to these if it puts back what was there.
Memory that is no argument and that each call writes anew, as scratch memory, is waste.
The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: a buffer or a global that a call changes in passing makes its result depend on how often it was
called, and the caller cannot see it.

What breaks it: a bank that backward updates, a counter in a module global, an in-place operation through `.data`.

Remedy: return the new value, or declare in `Effects.writes` what moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from gradspec._held import Holders
from gradspec.law import HOLDS, Finding, Law, Rank, Trial, broken
from gradspec.laws.tensor._inputs_untouched import OF_BACKWARD
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._memory import Snapshot
from gradspec.laws.tensor.support._passes import Pass, in_each_pass
from gradspec.laws.tensor.support._reference import moving_state
from gradspec.laws.tensor.support._write_lines import of_write
from gradspec.laws.tensor.support._written import Write, Writes, storage_of


def _check(trial: Trial) -> Finding:
    return in_each_pass(trial, lambda way: _watch(trial, way))


def _watch(trial: Trial, way: Pass) -> Finding:
    inputs = Inputs.of(trial)
    leaves = way.leaves(inputs)
    args = way.args(inputs, leaves, seed=trial.seed)
    named = {f"`{name}`" for name in trial.spec.effects.writes}
    known = {f"`{n}`": arg for n, arg in zip(inputs.values, args, strict=True) if isinstance(arg, Tensor)}
    versions = {id(t): t._version for t in known.values()}
    with Writes() as writes:
        y = outputs(trial.spec.function(*args))
    state = {storage_of(known[f"`{name}`"]) for name in moving_state(trial.spec) if f"`{name}`" in known}
    training = [module for module in Holders(args).modules if module.training]
    state |= {storage_of(held) for module in training for held in module.buffers(recurse=False)}
    hidden = list[tuple[str, Write]]()
    for write in writes.found:
        if write.storage not in state:
            if _name_of(write, known):
                return _undeclared("forward", write, known, named, versions=versions)
            hidden.append(("forward", write))
    writes.found.clear()
    moved = {n: (t, Snapshot.of(t)) for n, t in known.items() if state and storage_of(t) in state}
    if not leaves:
        return _of_hidden(trial, way, hidden, known)
    known |= {f"output {k}": t for k, t in enumerate(y)}
    for order in way.orders(y, leaves, trial.seed):
        known |= {f"the cotangent of {name}": v for name, v in order.cotangents.items()}
        versions |= {id(t): t._version for t in order.cotangents.values()}
        writes.handed_out(order.outputs.values())
        with writes:
            order.differentiate()
    declared = {storage_of(known[name]) for name in named if name in known}
    # What forward may move backward may move too, if it puts it back.
    declared |= {storage_of(t) for t, before in moved.values() if before.has_bits_of(t)}
    # A block that backward runs again adds to the gradients of its parameters, as any backward does.
    added = (p.grad for module in Holders(args).modules for p in module.parameters())
    declared |= {storage_of(grad) for grad in added if grad is not None}
    for write in writes.found:
        if write.storage not in declared:
            if _name_of(write, known):
                return _undeclared("backward", write, known, versions=versions)
            hidden.append(("backward", write))
    return _of_hidden(trial, way, hidden, known)


def _of_hidden(trial: Trial, way: Pass, hidden: list[tuple[str, Write]], known: dict[str, Any]) -> Finding:
    """Return what is said of writes to memory that is no argument: waste, if each pass writes all of it anew."""
    if not hidden:
        return HOLDS
    inputs = Inputs.of(trial)
    before = [Snapshot.of(write.tensor) for _, write in hidden]
    leaves = way.leaves(inputs)
    y = outputs(trial.spec.function(*way.args(inputs, leaves, seed=trial.seed)))
    for order in way.orders(y, leaves, trial.seed) if leaves else ():
        order.differentiate()
    kept = [one.has_bits_of(write.tensor) for one, (_, write) in zip(before, hidden, strict=True)]
    where, write = hidden[kept.index(False) if False in kept else 0]
    finding = _undeclared(where, write, known)
    if False in kept:
        return finding
    return replace(finding, message=f"{finding.message}; the next call writes it anew", rank=Rank.WASTE)


def _name_of(write: Write, known: dict[str, Any]) -> str:
    dense = {name: tensor for name, tensor in known.items() if tensor.layout is torch.strided}
    return next((name for name, tensor in dense.items() if storage_of(tensor) == write.storage), "")


def _undeclared(
    where: str,
    write: Write,
    known: dict[str, Any],
    named: Collection[str] = (),
    versions: Mapping[int, int] = MappingProxyType({}),
) -> Finding:
    name = _name_of(write, known)
    is_tracked = not name or versions.get(id(known[name]), -1) != known[name]._version
    target = name or f"a tensor {describe(write.tensor)} that is no argument"
    how = OF_BACKWARD if name in named else "which is not declared"
    return broken(
        f"{where} writes to {target}, {how}: {write.operation} ({write.line})",
        argument=target,
        got=write.operation,
        expected="no write" if where == "forward" else "writes to what Effects.writes names alone",
        likely="" if name else "an in-place operation on memory that outlives the call: a buffer, a global",
        reason=of_write(write, name, is_tracked=is_tracked) if name else None,
        details={"line": write.line},
    )


DECLARED_WRITES = Law(
    name="declared_writes",
    family="effects",
    statement=r"\operatorname{written}(F) \subseteq \text{declared}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
