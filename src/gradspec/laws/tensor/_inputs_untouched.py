r"""No bit and no version counter of an argument changes in forward; in backward, only those that are declared.

In the audit of a module in training, forward may write to its buffers and frozen parameters; and to any argument as the
primal does. A write to an argument that nothing reads, as to a running statistic, is waste.
Nor does forward leave a hook on an argument that changes its gradient: each call would add one.
The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: an argument that changes under the caller is a silent error somewhere else.

What breaks it: an in-place operation on an argument, on a view of it, or through `.data` and numpy; a Function that
writes in place without `ctx.mark_dirty`, also behind a wrapper that hands it a copy; `x.register_hook` on an argument.

Remedy: compute out of place; declare what is written on purpose.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken
from gradspec.laws.tensor._declared_writes import OF_BACKWARD, why_written
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._hooks import left_hook
from gradspec.laws.tensor.support._memory import Change, Snapshot, difference, first_change, snapshots, state_of
from gradspec.laws.tensor.support._own_writes import is_read, left_by_primal
from gradspec.laws.tensor.support._passes import Pass, in_each_pass
from gradspec.laws.tensor.support._reference import module_state, moving_state
from gradspec.laws.tensor.support._spying import in_place_of
from gradspec.spec._function_parts import is_function_class

#: The likely cause: nothing else changes the values of a tensor.
IN_PLACE = "an in-place operation on an input: add_(), masked_fill_(), an `out=`, or its memory through numpy()"

#: That of state that forward has moved.
AGAIN = "forward runs again in backward: keep the state and put it back, or do not move it there"

#: That of a buffer of a module, which may move in training.
EVALUATED = "the buffer moves in evaluation, too: write to it only `if self.training`"
#: The likely cause of an argument that is no tensor and changes.
OBJECT = "forward changes the object that it is given: the next call, and the caller, get another one"
#: Of an argument to which the primal writes too, and other numbers.
OTHER = "forward writes other numbers to `{0}` than the primal does"
#: Of one that nothing reads.
UNREAD = "no result depends on what was there, as on a running statistic: it moves twice in a checkpointed block"
#: Of what a Function behind a wrapper writes to.
UNMARKED = "forward of {0} writes to `{1}` and does not mark it: the gradient of what was there before is lost"
MARK = "ctx.mark_dirty on what forward writes to, and it returns that"


def _check(trial: Trial) -> Finding:
    finding = in_each_pass(trial, lambda way: _watch(trial, way))
    finding = _marked(trial) if finding is HOLDS else finding
    return left_hook(trial) if finding is HOLDS else finding


def _marked(trial: Trial) -> Finding:
    """Look at what the Function behind a wrapper is handed: the wrapper may give it a copy, which a model does not."""
    behind, inputs = trial.spec.autograd_function, Inputs.of(trial)
    if not is_function_class(behind) or not inputs.wrt or getattr(trial.spec.function, "__self__", None) is behind:
        return HOLDS
    cls: Any = behind
    written: list[tuple[str, Tensor]] = []
    marked: list[Tensor] = []
    is_apart = cls.setup_context is not Function.setup_context
    forward, names = cls.forward, list(inspect.signature(cls.forward).parameters)

    def watched(*args: Any) -> Any:
        trained = {n: a for n, a in zip(names, args, strict=False) if isinstance(a, Tensor) and a.requires_grad}
        before = snapshots(trained)
        y = forward(*args)
        written.extend((name, trained[name]) for name in before if not before[name].has_bits_of(trained[name]))
        if not is_apart:
            marked.extend(getattr(args[0], "dirty_tensors", None) or ())
        return y

    def told(ctx: Any, given: Any, output: Any) -> None:
        set_up(ctx, given, output)
        marked.extend(getattr(ctx, "dirty_tensors", None) or ())

    set_up = cls.setup_context
    tells = in_place_of(cls, "setup_context", staticmethod(told)) if is_apart else nullcontext()
    with in_place_of(cls, "forward", staticmethod(watched)), tells:
        trial.spec.function(*inputs.args(inputs.leaves()))
    for name, tensor in written:
        if not any(tensor is one for one in marked):
            reason = Reason(kind="in-place write", words=MARK, evidence={"argument": name})
            return broken(UNMARKED.format(cls.__name__, name), argument=f"`{name}`", likely=MARK, reason=reason)
    return HOLDS


def _watch(trial: Trial, way: Pass) -> Finding:
    inputs = Inputs.of(trial)
    leaves = way.leaves(inputs)
    along = way.along(leaves, trial.seed)
    args = way.args(inputs, leaves, along)
    tensors = {f"`{name}`": arg for name, arg in zip(inputs.values, args, strict=True) if isinstance(arg, Tensor)}
    tensors |= {f"the tangent of `{name}`": tangent for name, tangent in along.items()}
    before = snapshots(tensors)
    objects = {name: arg for name, arg in zip(inputs.values, args, strict=True) if not isinstance(arg, Tensor)}
    plain = {name: state_of(value) for name, value in objects.items()}
    drawn = torch.get_rng_state()
    y = outputs(trial.spec.function(*args))
    for name, value in objects.items():
        how = "" if name in trial.spec.effects.writes else difference(plain[name], state_of(value), name)
        if how and _gives_another(trial, inputs, args, y, drawn):
            reason = Reason(kind="in-place write", words=OBJECT, evidence={"argument": f"`{name}`"})
            said = f"{how}, and a second call gives another value"
            return _written("forward", Change(f"`{name}`", said, {}), reason, OBJECT)
    state = {f"`{name}`" for name in moving_state(trial.spec)}
    declared = {f"`{name}`" for name in trial.spec.effects.writes}
    changed = first_change({n: snapshot for n, snapshot in before.items() if n not in state}, tensors)
    if changed:
        for name, left in left_by_primal(trial, inputs).items():
            finding = compare(trial, "", tensors[f"`{name}`"].detach(), left, said=OTHER.format(name))
            if finding is not HOLDS:
                return replace(finding, argument=f"`{name}`")
            state.add(f"`{name}`")
        changed = first_change({n: snapshot for n, snapshot in before.items() if n not in state}, tensors)
    if changed:
        name = changed.name
        changed = replace(changed, how=f"{changed.how}, {OF_BACKWARD}") if name in declared else changed
        if name.strip("`") in module_state(trial.spec):
            of_buffer = Reason(kind="in-place write", words=EVALUATED, evidence={"argument": name})
            return _written("forward", changed, of_buffer, EVALUATED)
        if name not in declared and not is_read(trial, inputs, name[1:-1]):
            return replace(_written("forward", changed, None, UNREAD), rank=Rank.WASTE)
        reason = _reason(trial, way, name, before, tensors)
        return _written("forward", changed, reason, reason.words)
    moved = snapshots({name: tensor for name, tensor in tensors.items() if name in state})
    way.backward(y, leaves, trial.seed)
    asked = {n: snapshot for n, snapshot in before.items() if n not in declared | state}
    if changed := first_change(asked, tensors):
        reason = _reason(trial, way, changed.name, before, tensors)
        return _written("backward", changed, reason, reason.words)
    # What forward may move is no argument of a graph: backward may move it too, and put it back.
    again = {n: snapshot for n, snapshot in moved.items() if n not in declared and not snapshot.has_bits_of(tensors[n])}
    if again:
        name = next(iter(again))
        reason = Reason(kind="moved twice", words=AGAIN, evidence={"argument": name})
        said = "forward has moved it already, and it moves twice in a step"
        return _written("backward", Change(name, said, moved[name].place_of_change(tensors[name])), reason, AGAIN)
    return HOLDS


def _gives_another(trial: Trial, inputs: Inputs, args: Sequence[Any], y: tuple[Any, ...], drawn: Tensor) -> bool:
    """Whether the same call and draws, with the objects as the first one has left them, give another value."""
    again = [a if isinstance(a, Tensor) else b for a, b in zip(inputs.args(), args, strict=True)]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.set_rng_state(drawn)
        other = outputs(trial.spec.function(*again))
    pairs = [(a, b) for a, b in zip(y, other, strict=True) if isinstance(a, Tensor) and isinstance(b, Tensor)]
    return any(compare(trial, "value", b, a) is not HOLDS for a, b in pairs)


def _reason(
    trial: Trial, way: Pass, name: str, before: Mapping[str, Snapshot], tensors: Mapping[str, Tensor]
) -> Reason:
    """Return which operation writes, and whether autograd was told: a graph that needs what was there refuses then."""
    if (shown := why_written(trial, way, name)) is not None:
        return shown
    facts = {"argument": name}
    if tensors[name]._version == before[name].version:
        untold = "a write in place through .data, detach() or numpy(): the version counter has not moved"
        return Reason(kind="untracked write", words=untold, evidence=facts)
    return Reason(kind="in-place write", words=IN_PLACE, evidence=facts)


def _written(where: str, changed: Change, reason: Reason | None, likely: str = IN_PLACE) -> Finding:
    said = f"{where} writes to {changed.name}: {changed.how}"
    return broken(said, argument=changed.name, likely=likely, reason=reason, **changed.place)


INPUTS_UNTOUCHED = Law(
    name="inputs_untouched",
    family="effects",
    statement=r"x_{\text{after}} = x_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
