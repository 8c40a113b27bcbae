"""What backward writes over: why a second one over a graph gives another gradient, or why the first one is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map

from gradspec.explain._wrong import Wrong
from gradspec.law import HOLDS, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, vjp
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._written import Write, Writes, line_of_the_user, storage_of, tensors_given

#: By the name of an argument.
_Gradients = dict[str, Tensor | None]

#: What torch says where a tensor that it has saved was written to.
_MODIFIED = "modified by an inplace operation"


def why_not_again(trial: Trial) -> Reason | None:
    """Return what backward changes, if the first pass gives the same over each new graph and a later one does not."""
    inputs = Inputs.of(trial)
    _, expected, again = _twice(trial, inputs)
    if compare_all(trial, "gradient", again, expected) is HOLDS:
        return None  # what is wrong is wrong in the first pass, or it is the cotangent that was written to
    if compare_all(trial, "gradient", vjp(trial.spec.function, inputs, seed=trial.seed), expected) is not HOLDS:
        return None
    kept, expected, again = _twice(trial, inputs, takes_back=True)
    if not kept or compare_all(trial, "gradient", again, expected) is not HOLDS:
        return Reason(kind="on ctx", words="the same over a new graph: backward changes what it finds on ctx")
    return _changed(kept[0])


def why_raised_again(trial: Trial) -> Reason | None:
    """Return what backward changes, if torch refuses a second pass for that and not the first one over a new graph."""
    kept, _, again = _once(trial, Inputs.of(trial))
    try:
        again()
    except RuntimeError as error:
        return _changed(kept[0]) if kept and _MODIFIED in str(error) else None
    return None


def _changed(write: Write) -> Reason:
    said = f"backward changes what forward keeps for it: {write.operation} ({write.line})"
    return Reason(kind="overwritten", words=said, evidence={"operation": write.operation, "line": write.line})


def _twice(trial: Trial, inputs: Inputs, *, takes_back: bool = False) -> tuple[list[Write], _Gradients, _Gradients]:
    """Return what a pass writes beside its cotangent, and the gradients of two passes over a graph, for alike ones."""
    kept, first, again = _once(trial, inputs)
    for write in reversed(kept) if takes_back else ():
        write.take_back()
    return kept, first, again()


def _once(trial: Trial, inputs: Inputs) -> tuple[list[Write], _Gradients, Callable[[], _Gradients]]:
    """Return what a pass writes beside its cotangent, its gradients, and what runs another pass over the graph."""
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    v = like(y, trial.seed)
    with Writes(keep=True) as writes:
        found = gradients(y, leaves, v, retain_graph=True)
    first = {name: None if t is None else t.detach().clone() for name, t in found.items()}
    kept = [write for write in writes.found if write.storage not in {storage_of(t) for t in v}]
    return kept, first, lambda: gradients(y, leaves, like(y, trial.seed), retain_graph=True)


def of_a_write(wrong: Wrong) -> Reason | None:
    """Whether the gradient is right once what backward writes over stays: it is read after that."""
    (writes, _) = _without(wrong, frozenset())
    for line in dict.fromkeys(write.line for write in writes):
        _, got = _without(wrong, frozenset((line,)))
        if wrong.is_right_for(wrong.name, got):
            operation = next(write.operation for write in writes if write.line == line)
            said = f"right where {operation} ({line}) writes to a copy: what it writes over is read after that"
            evidence = {"argument": wrong.name, "operation": operation, "line": line}
            return Reason(kind="overwritten", words=said, evidence=evidence)
    return None


def _without(wrong: Wrong, lines: frozenset[str]) -> tuple[list[Write], _Gradients]:
    """Return what a pass writes to, and its gradients, with the writes of some lines made to copies."""
    leaves = wrong.inputs.leaves()
    y, v = outputs(wrong.trial.spec.function(*wrong.inputs.args(leaves))), tuple(t.clone() for t in wrong.v)
    with _Elsewhere(lines) as writes:
        found = gradients(y, leaves, v, copied=False)
    return writes.found, found


class _Elsewhere(Writes):  # type: ignore[no-untyped-call]  # torch has no types here
    """Makes the writes of some lines to copies of what they write to."""

    def __init__(self, lines: frozenset[str]) -> None:
        super().__init__()
        self._lines = lines

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._lines and line_of_the_user() in self._lines:
            copies = {id(t): t.clone() for is_written, t in tensors_given(func, args, kwargs) if is_written}
            args, kwargs = tree_map(lambda leaf: copies.get(id(leaf), leaf), (args, kwargs))
        return super().__torch_dispatch__(func, types, args, kwargs)
