r"""An operator writes exactly the arguments that its schema declares, and no output shares memory undeclared.

Memory is compared bit by bit, outputs with arguments by the range of bytes that they span. An argument that is declared
to be written must change if `primal` changes it; the law `primal` checks that the value is right. An output that is
declared to alias an argument (`Tensor(a)`) must be memory of it, unless the argument is not contiguous or has another
dtype: torch's own `reshape` and `to` return copies then.

Why it matters: torch.compile orders, reuses and drops calls only by the schema. A write that it does not know is lost
or done twice, and an output that is an argument is overwritten.

What breaks it: an `add_` on an argument that `mutates_args` does not name, `return x` if nothing had to be done, a
view returned, `mutates_args` that names what the kernel only reads, `Tensor(a)` for an output that is a copy.

Remedy: name written arguments in `mutates_args`, return a clone if the result equals an argument, and return a view of
one only as `Tensor(a)`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, TrialOf, broken
from gradspec.laws.operator.support._call import Call
from gradspec.laws.tensor.support._memory import Snapshot, first_change, overlap, snapshots
from gradspec.laws.tensor.support._reference import is_stand_in, on_spec_side
from gradspec.spec import Case, OperatorSpec


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    call = Call.of(trial)
    tensors = call.tensors()
    before = snapshots(tensors)
    y = call.run()
    declared = call.written_tensors()
    if changed := first_change({n: s for n, s in before.items() if n not in declared}, tensors):
        return broken(
            f"the operator writes to {changed.name}, and its schema does not say so: {changed.how}",
            argument=changed.name,
            likely="an in-place operation of the kernel: name the argument in mutates_args, or work on a copy",
            **changed.place,
        )
    if (finding := _aliases(call, tensors, y)) is not HOLDS:
        return finding
    return _unmoved(trial, before, tensors)


def _aliases(call: Call, tensors: dict[str, Tensor], y: Any) -> Finding:
    """Judge whose memory the outputs use."""
    returns = call.overload._schema.returns
    values = (y,) if len(returns) == 1 else tuple(y or ())
    for place, (value, declared) in enumerate(zip(values, returns, strict=True)):
        if declared.alias_info is not None:
            if (finding := _alias(call, place, value, declared.alias_info)) is not HOLDS:
                return finding
            continue
        for leaf in tree_leaves(value):
            shared = next((n for n, t in tensors.items() if isinstance(leaf, Tensor) and overlap(leaf, t)), None)
            if shared is not None:
                is_same = leaf is tensors[shared] or leaf.shape == tensors[shared].shape
                return broken(
                    f"output {place} shares memory with {shared}, and the schema does not say so",
                    argument=f"output {place}",
                    got=f"memory of {shared}",
                    expected="memory of its own",
                    likely="the argument itself is returned: return a clone" if is_same else "a view is returned",
                )
    return HOLDS


def _alias(call: Call, place: int, value: Any, declared: Any) -> Finding:
    """Judge an output that shares memory with an argument, as the schema says."""
    sources = {
        argument.name: call.values.get(argument.name)
        for argument in call.overload._schema.arguments
        if argument.alias_info is not None and argument.alias_info.before_set & declared.before_set
    }
    if not sources or any(_agrees(value, source, declared.is_write) for source in sources.values()):
        return HOLDS
    names = " or ".join(f"`{name}`" for name in sources)
    return broken(
        f"the schema says that output {place} shares memory with {names}, and it does not",
        argument=f"output {place}",
        got="memory of its own",
        expected=f"memory of {names}",
        rank=Rank.WRONG,
        likely="the kernel returns a copy: return the view, or declare a Tensor without an alias",
    )


def _agrees(value: Any, source: Any, is_write: bool) -> bool:
    """Whether an output may be declared an alias of an argument."""
    if not (isinstance(value, Tensor) and isinstance(source, Tensor)) or 0 in (value.numel(), source.numel()):
        return True  # a list is not told apart by its places
    may_copy = not is_write and (not source.is_contiguous() or source.dtype != value.dtype)
    return may_copy or overlap(value, source)


def _unmoved(trial: TrialOf[OperatorSpec, Case], before: dict[str, Snapshot], tensors: dict[str, Tensor]) -> Finding:
    """Judge what is declared to be written: it moves, unless the primal leaves it where it is."""
    if not trial.spec.writes or is_stand_in(trial.spec.primal):
        return HOLDS
    again = Call.of(trial)
    names = again.written_tensors()
    returned = tree_leaves(on_spec_side("primal", trial.spec.primal, *again.args, **again.kwargs))
    for name, right in zip(names, returned[len(returned) - len(names) :], strict=True):
        if before[name].has_bits_of(tensors[name]) and not before[name].has_bits_of(right):
            return broken(
                f"the schema says that the operator writes to {name}, and it does not",
                argument=name,
                rank=Rank.WRONG,
                **Snapshot.of(right).place_of_change(tensors[name]),
                likely="the kernel works on a copy, or on a view that it made contiguous",
            )
    return HOLDS


SCHEMA = Law(
    name="schema",
    family="operators",
    scope=Scope.COMPILE,
    statement=r"\operatorname{writes}(F) = \operatorname{declared}, \quad y \cap x = \varnothing",
    check=_check,
    doc=__doc__ or "",
    kinds=("operator",),
)
