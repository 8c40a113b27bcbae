"""How an audit places the arguments of a function that declares nothing: all rows of a batch are shared, or of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from torch import Tensor

from gradspec.law import Law
from gradspec.laws.tensor.support._call import outputs
from gradspec.report import Report
from gradspec.spec import Case, FunctionSpec, Placements


def placed(spec: FunctionSpec, case: Case) -> FunctionSpec:
    """Return a spec that declares "shard(0)" of the output, and of each argument with its batch dimension.

    Then it declares "shard(0)" of only one argument, with the others replicated, and of the output nothing.

    Raises:
        ValueError: no argument of the case has the batch dimension.
    """
    y = next((t for t in outputs(spec.primal(*case.args, **case.kwargs)) if isinstance(t, Tensor)), None)
    tensors = {name: value for name, value in spec.named(case).items() if isinstance(value, Tensor)}
    shared = {n for n, v in tensors.items() if y is not None and v.ndim and v.shape[:1] == y.shape[:1]}
    if not shared:
        raise ValueError("no argument has the batch dimension of the output, so that none can be shared by its rows")
    together = _shared(tensors, shared)
    alone = [_shared(tensors, {name}) for name, value in tensors.items() if any(value.shape[:1])]
    ways = [Placements(arguments=together, output="shard(0)")]
    ways += [Placements(arguments=way, output="any") for way in alone if way != together]
    return replace(spec, placements=tuple(ways))


def _shared(names: Iterable[str], shared: Collection[str]) -> dict[str, str]:
    return {name: "shard(0)" if name in shared else "replicate" for name in names}


def without_spec(laws: Sequence[Law]) -> list[Law]:
    """Return the laws; `sharded` needs no spec here, because the audit declares the placements."""
    return [replace(law, needs_spec=law.needs_spec and law.name != "sharded") for law in laws]


def without_ranks(report: Report) -> Report:
    """Return a report without the findings on ranks, which a proposed spec does not cover."""
    return replace(report, verdicts=tuple(verdict for verdict in report.verdicts if verdict.law != "sharded"))
