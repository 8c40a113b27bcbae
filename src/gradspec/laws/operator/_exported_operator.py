r"""An exported program that calls the operator gives the same value and gradient after it is loaded in a new process.

The new process imports the modules that the spec names, as a user must, and no others of the package.

Why it matters: programs are exported to run elsewhere. An operator stays a call in them, and its gradient is looked
up by name where the program runs.

What breaks it: an operator that is registered within a function or a `__main__`, a composite one, which is taken apart
into torch's operators, without its gradient, one in C++ whose library no module of the spec loads.

Remedy: register the operator where its module is imported, with `register_fake` and `register_autograd`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, TrialOf, broken, not_applicable, raised
from gradspec.laws.operator.support._call import Call
from gradspec.laws.tensor.support._call import gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare
from gradspec.spec import Case, OperatorSpec
from gradspec.spec._schema import named

#: What the new process runs; a folder is its argument.
_LOADS = """
import gc, importlib, importlib.util, sys
from pathlib import Path
gc.disable()  # searches of what is imported take a third of its seconds
import torch
torch.set_num_threads(1)
folder = Path(sys.argv[1])
given = torch.load(folder / "given.pt", weights_only=False)
for name, file in given["modules"].items():
    if file is None:
        importlib.import_module(name)
    else:
        sys.path.insert(0, str(Path(file).parent))
        spec = importlib.util.spec_from_file_location(name, file)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
namespace, _, name = given["operator"].partition("::")
if not hasattr(getattr(torch.ops, namespace), name.partition(".")[0]):
    imported = ", ".join(given["modules"]) or "nothing"
    raise LookupError(
        f"{given['operator']} is not registered by importing {imported}: import its library in the module of `primal`"
    )
program = torch.export.load(folder / "program.pt2").module()
leaves = [t.requires_grad_() for t in given["leaves"]]
y = program(*leaves)
y = tuple(y) if isinstance(y, (tuple, list)) else (y,)
pairs = [(t, v) for t, v in zip(y, given["cotangents"]) if t.requires_grad]
got = torch.autograd.grad([t for t, _ in pairs], leaves, [v for _, v in pairs], allow_unused=True) if pairs else None
torch.save({"values": [t.detach() for t in y], "gradients": got}, folder / "found.pt")
gc.freeze()
"""


class _Exported(torch.nn.Module):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call, self.places = call, {name: k for k, name in enumerate(call.on_leaves().leaves)}

    def forward(self, *tensors: Tensor) -> Any:
        names = iter(self.call.tensors())

        def given(value: Any) -> Any:
            place = self.places.get(next(names)) if isinstance(value, Tensor) else None
            return value if place is None else tensors[place]

        return self.call.mapped(given).run()


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    call = Call.of(trial)
    leaves = call.on_leaves().leaves
    if not leaves or trial.spec.writes:
        return not_applicable("no gradient flows through the operator in this case")
    if trial.case.name != _first(trial):
        return not_applicable("one case shows it: a new process costs seconds")
    torch._dynamo.reset()
    module, plain = _Exported(call), [leaf.detach() for leaf in leaves.values()]
    exported = torch.export.export(module, tuple(plain), strict=False)
    y = outputs(module(*leaves.values()))
    v = like(y, trial.seed)
    right = gradients(y, leaves, v)
    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(exported, Path(folder) / "program.pt2")
        given = {
            "modules": _modules(trial.spec),
            "operator": named(call.overload),
            "leaves": plain,
            "cotangents": v,
        }
        torch.save(given, Path(folder) / "given.pt")
        words = [sys.executable, "-c", _LOADS, folder]
        run = subprocess.run(words, capture_output=True, text=True, timeout=trial.profile.seconds, check=False)
        if run.returncode:
            said = run.stderr.strip().splitlines()[-1:] or [f"exit code {run.returncode}"]
            return raised(RuntimeError(said[0]), "the new process", rank=Rank.REFUSED)
        found = torch.load(Path(folder) / "found.pt", weights_only=True)
    for place, (got, expected) in enumerate(zip(found["values"], y, strict=True)):
        if (finding := compare(trial, f"value {place} in a new process", got, expected.detach())) is not HOLDS:
            return finding
    if found["gradients"] is None:
        return broken("in a new process the program has no gradient", rank=Rank.WRONG)
    for (name, expected), got in zip(right.items(), found["gradients"], strict=True):
        if (finding := compare(trial, f"gradient of {name} in a new process", got, expected)) is not HOLDS:
            return finding
    return HOLDS


def _first(trial: TrialOf[OperatorSpec, Case]) -> str:
    """Return the name of the first case."""
    from gradspec.spec._maker import Maker

    return next(iter(trial.spec.cases(Maker(trial.seed, trial.profile.device)))).name


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
    statement=r"\operatorname{load}(\operatorname{save}(\operatorname{export}(F))) = F",
    check=_check,
    doc=__doc__ or "",
    kinds=("operator",),
    cost="compile",
    requires=("primal", "vjp"),
    capability="export",
    specimens=("configured_here_alone",),
)
