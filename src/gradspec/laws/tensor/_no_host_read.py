r"""Neither forward nor backward reads a value that depends on the arguments back to the host.

The law checks a plain pass, a pass with a tangent, and a differentiated backward pass, if these are promised.

Why it matters: each read makes the host wait for the GPU to drain, and breaks the graph under `torch.compile`.

What breaks it: `.item()`, `.tolist()`, `float(x)`, a branch on a value, a boolean mask as an index, `nonzero`.

Remedy: keep hyper-parameters Python numbers; use `torch.where` for masks, and `torch._assert_async` for checks.
"""

from __future__ import annotations

from contextlib import suppress

from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Rank, Status, Trial, broken, raised, shown
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._passes import PLAIN, Pass, in_each_pass, passes
from gradspec.laws.tensor.support._reads import watching
from gradspec.laws.tensor.support._waiting import waiting_is_an_error

#: What makes a read that is seen; the message names it as torch does.
_MADE_BY = {
    "aten._local_scalar_dense": ".item(), float(), int(), or a branch on a value",
    "aten.is_nonzero": "a branch on a value",
    "aten.equal": "torch.equal(), which compares values",
    **dict.fromkeys(("aten.index", "aten._unsafe_index"), "a boolean mask as an index"),
    **dict.fromkeys(("aten.index_put", "aten.index_put_"), "a boolean mask as an index that is written to"),
    "aten.nonzero": "nonzero(), argwhere(), or where() of a condition alone",
    "numpy": "NumPy computes on the host: use operations of torch",
    "__array__": "NumPy computes on the host: use operations of torch",
    "tolist": "tolist() makes numbers of Python: keep them in a tensor",
    "cpu": "cpu() copies the values to the host",
}

#: What torch says where a tensor has no values to read: of a batch, a tensor that is fake, or one that is traced.
_SAID = (".item()", "data-dependent", "DataDependent", "data pointer", "dynamic shape", "DynamicOutputShape")


def _check(trial: Trial) -> Finding:
    return in_each_pass(trial, lambda way: _watch(trial, way))


def _watch(trial: Trial, way: Pass) -> Finding:
    inputs = Inputs.of(trial)
    tensors = [value for value in inputs.values.values() if isinstance(value, Tensor)]
    reads: list[str] = []
    _run(trial, inputs, way, reads)
    if not reads:
        return _on_cuda(trial, inputs) if way is PLAIN and any(tensor.is_cuda for tensor in tensors) else HOLDS
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return _elsewhere(trial, inputs, way, reads[0])
    return _broken(reads[0])


def why_refused(trial: Trial, finding: Finding) -> str:
    """Say which read a call was refused for: torch says so, and a sound call reads a value in the line that raised."""
    if not any(said in finding.details["raised"] for said in _SAID):
        return ""
    reads: list[str] = []
    for way in passes(trial):
        with suppress(Exception), way.level():
            _run(trial, Inputs.of(trial), way, reads)
    place = finding.details["place"]
    read = next((read for read in reads if read.endswith(f" ({place})")), "")
    if not read:
        return ""
    where, what = read.split()[:2]
    return f"{where} reads a value at {place.partition(',')[0]}: {_MADE_BY.get(what, what)}"


def _run(trial: Trial, inputs: Inputs, way: Pass, reads: list[str]) -> None:
    """Run forward and backward, and add to `reads` as "forward aten.nonzero (bank.py:31, in forward)"."""
    leaves = way.leaves(inputs)
    args = way.args(inputs, leaves, seed=trial.seed)
    given = [arg for arg in args if isinstance(arg, Tensor)]
    with watching(given, "forward", reads):
        y = outputs(trial.spec.function(*args))
    for order in way.orders(y, leaves, trial.seed):
        with watching([*given, *order.outputs.values(), *order.cotangents.values()], "backward", reads):
            order.differentiate()


def _elsewhere(trial: Trial, inputs: Inputs, way: Pass, read: str) -> Finding:
    """Judge a read on a CPU by what happens on the device `meta`, which represents the others and has no values.

    A check of values that is left to the device elsewhere may read on a CPU: nothing waits there.
    """
    values = {n: v.to("meta") if isinstance(v, Tensor) else v for n, v in inputs.values.items()}
    reads: list[str] = []
    try:
        _run(trial, Inputs(values, inputs.wrt), way, reads)
    except Exception as error:
        if not reads:
            why = f"on a CPU, {read}; elsewhere, only a CUDA device can say, as meta tensors raise {shown(error)}"
            return Finding(status=Status.NOT_MEASURED, message=why)
    if reads:  # the first on a CPU may be of a check that is made there alone
        return _broken(reads[0])
    return Finding(status=Status.HOLDS, message=f"on a CPU alone, {read}: nothing waits")


def _broken(read: str) -> Finding:
    return broken(
        read.replace(" ", " reads a value back to the host: ", 1),
        got=read,
        expected="no read",
        rank=Rank.WASTE,
        likely=_MADE_BY.get(read.split()[1], ""),
    )


def _on_cuda(trial: Trial, inputs: Inputs) -> Finding:
    """Let CUDA itself say whether anything waits: some kernels do, whatever the operation."""
    leaves = inputs.leaves()
    args = inputs.args(leaves)
    v = like(outputs(trial.spec.function(*args)), trial.seed)
    try:
        with waiting_is_an_error():
            gradients(outputs(trial.spec.function(*args)), leaves, v)
    except Exception as error:
        return raised(error, "forward and backward on CUDA")
    return HOLDS


NO_HOST_READ = Law(
    name="no_host_read",
    family="device",
    scope=Scope.MEMORY,
    statement=r"\operatorname{reads}(F) \cup \operatorname{reads}(B) = \varnothing",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
