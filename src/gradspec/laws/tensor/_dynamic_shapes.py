r"""One compilation, by `torch.compile(dynamic=True)`, serves several batch sizes with the right values and gradients.

The other batches consist of rows of the case: each tensor with the same first size as the first differentiated argument
gets as many rows as that argument. The last size comes once more, with each number of the differentiated arguments
times one between a half and 1: other values must not be compiled again. Where the function or its reference raises,
or the gradient of the reference is infinite, a batch shows nothing.

Why it matters: the last batch of an epoch, and sequences of any length, would each be compiled again, which takes
longer than the calls; a size that is baked into the graph silently gives the result for another size. A graph with a
guard on data is compiled again until torch gives up.

What breaks it: a branch on a size, `int(x.shape[0])`, a loop over rows, a table of the size of the first batch; a
branch on a value, `x.max().item()`, a number that was read from a tensor in eager mode and is kept in Python.

Remedy: let sizes enter only the sizes of tensors, and keep what is read from a tensor in a tensor; if a function has to
be compiled for each, promise nothing: `dynamic_shapes=None` in `supports`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, fresh, gradients, like, outputs, resembling, whole
from gradspec.laws.tensor.support._made_up import can_be_made
from gradspec.laws.tensor.support._reference import reference
from gradspec.laws.tensor.support._transform import frozen, judge_run, of_a_plain_call

#: How many batch sizes one compilation is to serve.
SIZES = 3
#: The most elements of the first argument in a batch that is larger than every other size of the call.
LARGEST = 100_000


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    batches = list(islice(_batches(inputs), SIZES))
    if not batches:
        return not_applicable("the first differentiated argument has no rows")
    if not all(_takes(trial, batch) for batch in batches):
        return not_applicable("the other arguments fix the batch size")
    names = tuple(name for name, value in inputs.values.items() if isinstance(value, Tensor))
    graphs: set[Any] = set()

    def backend(graph: Any, examples: Any) -> Any:
        made = torch._dynamo.lookup_backend(trial.profile.backend)(graph, examples)

        def call(*args: Any) -> Any:
            graphs.add(made)  # here, for Dynamo may start again with a graph that it has had compiled
            return made(*args)

        return call

    torch._dynamo.reset()
    whole = frozen(trial.spec.function, Inputs(inputs.values, names))
    compiled = torch.compile(whole, fullgraph=True, dynamic=True, backend=backend)

    def judge_on(batch: Inputs, way: str) -> Finding:
        def run(*leaves: Tensor) -> Any:
            given = dict(zip(batch.wrt, leaves, strict=True))
            return compiled(*(given[name] if name in given else fresh(batch.values[name]) for name in names))

        finding = judge_run(trial, batch, f"torch.compile(dynamic=True), {way}", run)
        return of_a_plain_call(trial, batch, way, finding)

    for batch in batches:
        if (finding := judge_on(batch, f"a batch of {_rows(batch)}")) is not HOLDS:
            return finding
    if len(graphs) > 1 and trial.spec.supports.dynamic_shapes:
        sizes = ", ".join(str(_rows(batch)) for batch in batches)
        why = Reason(kind="size", words="a size is read as a number: in a branch, a loop, or by int()")
        return _again(f"compiled {len(graphs)} times for the batch sizes {sizes}", graphs, why)
    served, other = len(graphs), _with_other_values(batches[-1], trial.seed)
    if not _takes(trial, other):  # these calls are in eager mode, where the function may read a value and keep it
        return HOLDS
    if (finding := judge_on(other, f"a batch of {_rows(other)} with other values")) is not HOLDS:
        return finding
    if len(graphs) > served and trial.spec.supports.dynamic_shapes:
        said = "the graph is guarded on data: a number that is read from a tensor decides what is computed"
        why = Reason(kind="data", words=said)
        return _again(f"compiled anew for other values in a batch of {_rows(other)}", graphs, why)
    return HOLDS


def _again(message: str, graphs: set[Any], why: Reason) -> Finding:
    return broken(message, got=f"{len(graphs)} graphs", expected="one graph", reason=why, rank=Rank.WASTE)


def _takes(trial: Trial, batch: Inputs) -> bool:
    """Whether the function and its reference can be called with a batch, and the reference has a derivative there."""
    if not can_be_made(trial.spec.function, batch):
        return False
    leaves = batch.leaves()
    try:
        trial.spec.function(*batch.args(batch.leaves()))
        y = outputs(reference(trial.spec)(*batch.args(leaves)))
        found = gradients(y, leaves, like(y, trial.seed))
    except Exception:
        return False
    return all(g is None or bool(g.isfinite().all()) for g in found.values())


def _with_other_values(batch: Inputs, seed: int) -> Inputs:
    """Return a batch of the same size with other numbers, so that sums and largest values are others.

    What is whole, as spikes and labels are, may have to be: its rows come in another order.
    """
    given = tuple(batch.values[name] for name in batch.wrt)
    drawn = resembling(given, seed)
    others = tuple(t.flip(0) if _is_whole(t) else other for t, other in zip(given, drawn, strict=True))
    return Inputs({**batch.values, **dict(zip(batch.wrt, others, strict=True))}, batch.wrt)


def _is_whole(t: Tensor) -> bool:
    return t.layout is torch.strided and t.ndim > 0 and torch.equal(t, whole(t))


def _batched(inputs: Inputs) -> dict[str, Tensor]:
    """Return the tensors that have as many rows as the first differentiated one."""
    tensors = {name: value for name, value in inputs.values.items() if isinstance(value, Tensor)}
    return {name: value for name, value in tensors.items() if value.ndim and len(value) == _rows(inputs)}


def _rows(inputs: Inputs) -> int:
    return len(inputs.values[inputs.wrt[0]])


def _batches(inputs: Inputs) -> Iterator[Inputs]:
    """Yield the call with batch sizes other than 0, 1 and the sizes of the call."""
    first = inputs.values[inputs.wrt[0]]
    if not first.ndim or not len(first):
        return
    tensors = {name: value for name, value in inputs.values.items() if isinstance(value, Tensor)}
    batched = _batched(inputs)
    others = [size for name, value in tensors.items() for size in value.shape[name in batched :]]
    # Above all other sizes, where that is not too much: a function may choose by which of two sizes is larger. Never
    # one of these, which torch would take for the same size in the first call, nor 0 or 1: these get their own graphs.
    top = max(others, default=0)
    is_small = first[0].numel() * top <= LARGEST
    for rows in (size for size in count(max(2, top + 1 if is_small else 2)) if size not in others):
        index = (torch.arange(rows, device=first.device) + rows) % len(first)
        moved = {name: tensors[name].detach()[index.to(tensors[name].device)] for name in batched}
        # A row that comes again has numbers of its own: of equal ones sorts and maxima choose as they like.
        for name in (name for name in inputs.wrt if name in moved and not moved[name].is_sparse):
            (other,) = resembling((moved[name],), rows)
            moved[name] = torch.cat((moved[name][: len(first)], other[len(first) :]))
        yield Inputs({**inputs.values, **moved}, inputs.wrt)


DYNAMIC_SHAPES = Law(
    name="dynamic_shapes",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(F)(x_n) = r(x_n) \text{ for each } n, \text{ once}",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    implied_by=("compile",),
    capability="dynamic_shapes",
)
