r"""An exported program that calls the operator gives the same value and gradient after it is loaded in a new process.

The program is loaded as `torch.export` makes it, and again after `run_decompositions()`, with which a deployment
begins. An operator that writes is exported in its form without effects: what it writes is an output. One new process
serves all cases; it imports the modules that the spec names, as a user must, and no others of the package.

Why it matters: programs are exported to run elsewhere. An operator stays a call in them, and its gradient is looked
up by name where the program runs.

What breaks it: an operator that is registered within a function or a `__main__`; a composite one, which is taken apart
into torch's operators and loses its gradient; one in C++ whose library no module of the spec loads.

Remedy: register the operator where its module is imported, with `register_fake` and `register_autograd`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, TrialOf, broken, not_applicable, raised
from gradspec.laws.operator.support._call import Call
from gradspec.laws.operator.support._new_process import NewProcessError, Program, run_elsewhere
from gradspec.laws.tensor.support._call import gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.spec import Case, OperatorSpec
from gradspec.spec._maker import Maker
from gradspec.spec._schema import named


class _Exported(torch.nn.Module):
    """A call of the form without effects, of the tensors among its arguments."""

    def __init__(self, function: Any, call: Call) -> None:
        super().__init__()
        self.function, self.call = function, call

    def forward(self, *tensors: Tensor) -> Any:
        given = iter(tensors)
        call = self.call.mapped(lambda value: next(given) if isinstance(value, Tensor) else value)
        return self.function(*call.args, **call.kwargs)


@dataclass(frozen=True)
class _Run:
    """A program of one case, and what the operator gives here."""

    where: str
    program: Program
    values: tuple[Tensor, ...]
    gradients: dict[str, Tensor | None]


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    first = next(iter(trial.spec.cases(Maker(trial.seed, trial.profile.device)))).name
    if trial.case.name != first:
        return not_applicable(f"judged with the case {first!r}: one new process, which costs seconds, serves all cases")
    torch._dynamo.reset()
    runs = [run for one in (trial, *trial.others()) for run in _runs(one)]
    if not runs:
        return not_applicable("no case has a tensor that the operator takes and one that it gives")
    programs, operator = [run.program for run in runs], named(trial.spec.overload)
    try:
        found = run_elsewhere(programs, operator, _modules(trial.spec))
    except NewProcessError as error:
        return raised(_told(str(error)), "the new process", rank=Rank.REFUSED)
    for run, got in zip(runs, found, strict=True):
        if (finding := _judged(trial, run, got)) is not HOLDS:
            return finding
    return HOLDS


def _runs(trial: TrialOf[OperatorSpec, Case]) -> Iterator[_Run]:
    """Yield the program of one case, as it is exported and taken apart."""
    call = Call.of(trial).on_leaves()
    tensors, leaves, module = call.tensors(), call.leaves, _Exported(trial.spec.function, call)
    y = outputs(module(*tensors.values()))
    if not tensors or not y:
        return
    plain = tuple(tensor.detach() for tensor in tensors.values())
    wanted = [place for place, name in enumerate(tensors) if name in leaves]
    v = like(y, trial.seed)
    right = gradients(y, leaves, v) if leaves else {}
    exported = torch.export.export(module, plain, strict=False)
    for way, program in (("", exported), (", taken apart", exported.run_decompositions())):
        where = f"in a new process (case {trial.case.name!r}{way})"
        yield _Run(where, Program(program, plain, wanted, v), tuple(t.detach() for t in y), right)


def _judged(trial: TrialOf[OperatorSpec, Case], run: _Run, found: dict[str, Any] | str) -> Finding:
    if isinstance(found, str):
        return raised(_told(found), f"the program {run.where}", rank=Rank.REFUSED)
    for place, (got, value) in enumerate(zip(found["values"], run.values, strict=True)):
        if (finding := compare(trial, f"value {place} {run.where}", got, value)) is not HOLDS:
            return finding
    if found["gradients"] is None and any(gradient is not None for gradient in run.gradients.values()):
        return broken(f"the program has no gradient {run.where}", rank=Rank.WRONG)
    for (name, expected), got in zip(run.gradients.items(), found["gradients"] or (), strict=False):
        if (
            finding := compare(trial, f"gradient of {name} {run.where}", got, expected, is_derivative=True)
        ) is not HOLDS:
            return finding
    return HOLDS


def _told(text: str) -> Exception:
    """Return an error that another process tells of as "KIND: WORDS", under the name that it has there."""
    kind, colon, words = text.partition(": ")
    return type(kind, (Exception,), {})(words) if colon and kind.isidentifier() else RuntimeError(text)


def _modules(spec: OperatorSpec) -> dict[str, str | None]:
    """Return the modules that register the operator, each with its file where it was imported by its file."""
    theirs = [name for name in spec.modules if name.partition(".")[0] not in ("__main__", "torch")]
    return {name: _file(name) for name in theirs if name in sys.modules}


def _file(name: str) -> str | None:
    module = sys.modules[name]
    is_found_by_name = getattr(module, "__spec__", None) is not None and "." in name
    file = getattr(module, "__file__", None)
    return None if is_found_by_name or file is None else str(Path(file).resolve())


EXPORTED_OPERATOR = Law(
    name="exported_operator",
    family="operators",
    scope=Scope.EXPORT,
    statement=r"\operatorname{load}(\operatorname{save}(\operatorname{export}(F))) = F",
    check=_check,
    doc=__doc__ or "",
    kinds=("operator",),
    cost="compile",
    requires=("primal", "vjp"),
    capability="export",
)
