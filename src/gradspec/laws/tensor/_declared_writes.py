r"""Forward writes to no memory that was there before, and backward writes only to what is declared.

In the audit of a module in training, forward may write to its buffers and frozen parameters; and to the buffers of a
module in training that is an argument, or is behind one, as a function that checkpoints is given one. Backward may
write to these if it puts back what was there. To an argument forward may write as the primal does, or if no result
depends on what was there: `inputs_untouched` says so.
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
from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._memory import Snapshot
from gradspec.laws.tensor.support._own_writes import is_read, left_by_primal
from gradspec.laws.tensor.support._passes import Pass, in_each_pass
from gradspec.laws.tensor.support._reference import moving_state
from gradspec.laws.tensor.support._written import Write, Writes, storage_of

#: Of what forward writes to, and the spec declares.
OF_BACKWARD = "and what `Effects.writes` declares moves in backward: specify the module that holds it, or return it"

#: The likely cause of a write to what a function is given.
_WRITES = "{0} writes in place to what it is given{1}: compute out of place, or on a copy"


def _check(trial: Trial) -> Finding:
    return in_each_pass(trial, lambda way: _watch(trial, way))


def why_written(trial: Trial, way: Pass, name: str) -> Reason | None:
    """Return the write to an argument or a cotangent as a cause, with its line; None where no operation shows one.

    Args:
        trial: the call.
        way: the pass in which it was written to.
        name: of the argument or cotangent, "`x`" or "the cotangent of output 0".
    """
    found = quietly(lambda: _watch(trial, way, only=name))
    return found.reason if found is not None else None


def _watch(trial: Trial, way: Pass, *, only: str = "") -> Finding:
    """Judge the writes of a pass, or of those to arguments and cotangents only that to one of them."""
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

    def is_own(argument: str) -> bool:
        return argument in left_by_primal(trial, inputs) or not is_read(trial, inputs, argument)

    for write in writes.found:
        if write.storage not in state:
            if (name := _name_of(write, known)) and only in ("", name):
                if not only and name not in named and is_own(name[1:-1]):
                    state.add(write.storage)
                    continue
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
            if (name := _name_of(write, known)) and only in ("", name):
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
    target = name or f"a tensor {describe(write.tensor)} that is no argument"
    how = OF_BACKWARD if name in named else "which is not declared"
    line = f"{write.operation} ({write.line})"
    return broken(
        f"{where} writes to {target}, {how}: {line}",
        argument=target,
        got=write.operation,
        expected="no write" if where == "forward" else "writes to what Effects.writes names alone",
        likely="" if name else "an in-place operation on memory that outlives the call: a buffer, a global",
        reason=_why(name, line, is_told=versions.get(id(known[name])) != known[name]._version) if name else None,
        details={"line": write.line},
    )


def _why(name: str, line: str, *, is_told: bool) -> Reason:
    """Return a write to an argument or a cotangent as a cause; every law that finds the same one names the same."""
    evidence = {"argument": name, "line": line}
    if is_told:
        # Of a Function torch takes an argument back that its forward has written to.
        marked = ", or return it, marked by `ctx.mark_dirty`" if line.endswith("in forward)") else ""
        return Reason(kind="in-place write", words=f"{_WRITES.format(line, '')}{marked}", evidence=evidence)
    untold = _WRITES.format(line, ", of which autograd is not told")
    return Reason(kind="untracked write", words=untold, evidence=evidence)


DECLARED_WRITES = Law(
    name="declared_writes",
    family="effects",
    statement=r"\operatorname{written}(F) \subseteq \text{declared}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
