r"""No bit and no version counter of an argument changes in forward; in backward, only those that are declared.

In the audit of a module in training, forward may write to its buffers and frozen parameters.
The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: an argument that changes under the caller is a silent error somewhere else.

What breaks it: an in-place operation on an argument, on a view of it, or through `.data` and numpy.

Remedy: compute out of place; declare what is written on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Reason, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._memory import Snapshot, first_change, snapshots
from gradspec.laws.tensor.support._passes import Pass, in_each_pass
from gradspec.laws.tensor.support._reference import module_state, moving_state

#: The likely cause: nothing else changes the values of a tensor.
IN_PLACE = "an in-place operation on an input: add_(), masked_fill_(), an `out=`, or its memory through numpy()"

#: That of state that forward has moved.
AGAIN = "forward runs again in backward: keep the state and put it back, or do not move it there"

#: That of a buffer of a module, which may move in training.
EVALUATED = "the buffer moves in evaluation, too: write to it only `if self.training`"
#: Of what forward writes to, and the spec declares.
OF_BACKWARD = "and what `Effects.writes` declares moves in backward: specify the module that holds it, or return it"


def _check(trial: Trial) -> Finding:
    return in_each_pass(trial, lambda way: _watch(trial, way))


def _watch(trial: Trial, way: Pass) -> Finding:
    inputs = Inputs.of(trial)
    leaves = way.leaves(inputs)
    along = way.along(leaves, trial.seed)
    args = way.args(inputs, leaves, along)
    tensors = {f"`{name}`": arg for name, arg in zip(inputs.values, args, strict=True) if isinstance(arg, Tensor)}
    tensors |= {f"the tangent of `{name}`": tangent for name, tangent in along.items()}
    before = snapshots(tensors)
    y = outputs(trial.spec.function(*args))
    state = {f"`{name}`" for name in moving_state(trial.spec)}
    declared = {f"`{name}`" for name in trial.spec.effects.writes}
    if changed := first_change({n: snapshot for n, snapshot in before.items() if n not in state}, tensors):
        name, how = changed
        how = f"{how}, {OF_BACKWARD}" if name in declared else how
        if name.strip("`") in module_state(trial.spec):
            of_buffer = Reason(kind="in-place write", words=EVALUATED, evidence={"argument": name})
            return _written("forward", (name, how), of_buffer, EVALUATED)
        return _written("forward", (name, how), _reason(name, before, tensors))
    moved = snapshots({name: tensor for name, tensor in tensors.items() if name in state})
    way.backward(y, leaves, trial.seed)
    asked = {n: snapshot for n, snapshot in before.items() if n not in declared | state}
    if changed := first_change(asked, tensors):
        return _written("backward", changed, _reason(changed[0], before, tensors))
    # What forward may move is no argument of a graph: backward may move it too, and put it back.
    again = {n: snapshot for n, snapshot in moved.items() if n not in declared and not snapshot.has_bits_of(tensors[n])}
    if again:
        name = next(iter(again))
        reason = Reason(kind="moved twice", words=AGAIN, evidence={"argument": name})
        said = "forward has moved it already, and it moves twice in a step"
        return _written("backward", (name, said), reason, AGAIN)
    return HOLDS


def _reason(name: str, before: Mapping[str, Snapshot], tensors: Mapping[str, Tensor]) -> Reason:
    """Return whether autograd was told of a write: a graph that needs what was there refuses then."""
    facts = {"argument": name}
    if tensors[name]._version == before[name].version:
        untold = "the values have changed and the version counter has not: a write through .data, detach() or numpy()"
        return Reason(kind="untracked write", words=untold, evidence=facts)
    return Reason(kind="in-place write", words=IN_PLACE, evidence=facts)


def _written(where: str, changed: tuple[str, str], reason: Reason, likely: str = IN_PLACE) -> Finding:
    name, how = changed
    return broken(f"{where} writes to {name}: {how}", argument=name, likely=likely, reason=reason)


INPUTS_UNTOUCHED = Law(
    name="inputs_untouched",
    family="effects",
    statement=r"x_{\text{after}} = x_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
