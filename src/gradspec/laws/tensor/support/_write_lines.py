"""Which operation writes to an argument or a cotangent, and in which line: of two laws that find it, one cause."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._passes import Pass
from gradspec.laws.tensor.support._written import Write, Writes, storage_of


def why_written(trial: Trial, way: Pass, name: str, *, is_tracked: bool = True) -> Reason | None:
    """Return the write to an argument or a cotangent as a cause, with its line; None where no operation shows one.

    Args:
        trial: the call.
        way: the pass in which it was written to.
        name: of the argument or cotangent, "`x`" or "the cotangent of output 0".
        is_tracked: whether autograd is told of the write.
    """
    write = quietly(lambda: _first_write(trial, way, name))
    return None if write is None else of_write(write, name, is_tracked=is_tracked)


def of_write(write: Write, name: str, *, is_tracked: bool) -> Reason:
    """Return a write as a cause; whoever finds the same one names the same."""
    told = "" if is_tracked else ", of which autograd is not told"
    line = f"{write.operation} ({write.line})"
    words = f"{line} writes in place to what it is given{told}: compute out of place, or on a copy"
    evidence = {"argument": name, "line": line}
    if is_tracked:
        return Reason(kind="in-place write", words=words, evidence=evidence)
    return Reason(kind="untracked write", words=words, evidence=evidence)


def _first_write(trial: Trial, way: Pass, name: str) -> Write | None:
    inputs = Inputs.of(trial)
    leaves = way.leaves(inputs)
    args = way.args(inputs, leaves, seed=trial.seed)
    known = {f"`{n}`": arg for n, arg in zip(inputs.values, args, strict=True) if isinstance(arg, Tensor)}
    with Writes() as writes:
        y = outputs(trial.spec.function(*args))
    found = _of(writes, known, name)
    for order in way.orders(y, leaves, trial.seed) if found is None and leaves else ():
        known |= {f"the cotangent of {one}": v for one, v in order.cotangents.items()}
        writes.handed_out(order.outputs.values())
        with writes:
            order.differentiate()
        if (found := _of(writes, known, name)) is not None:
            return found
    return found


def _of(writes: Writes, known: Mapping[str, Tensor], name: str) -> Write | None:
    """Return the first write to a tensor of a name."""
    if (tensor := known.get(name)) is None:
        return None
    return next((write for write in writes.found if write.storage == storage_of(tensor)), None)
