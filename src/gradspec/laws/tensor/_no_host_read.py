r"""Neither forward nor backward reads a value that depends on the arguments back to the host.

Why it matters: each read makes the host wait for the GPU to drain, and breaks the graph under `torch.compile`.

What breaks it: `.item()`, `.tolist()`, `float(x)`, a branch on a value, a boolean mask as an index, `nonzero`.

Remedy: keep hyper-parameters Python numbers; use `torch.where` for masks, and `torch._assert_async` for checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, raised, shown
from gradspec.laws.tensor._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor._reads import watching


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    tensors = [value for value in inputs.values.values() if isinstance(value, Tensor)]
    reads: list[str] = []
    _run(trial, inputs, reads)
    if not reads:
        return _on_cuda(trial, inputs) if any(tensor.is_cuda for tensor in tensors) else HOLDS
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return _elsewhere(trial, inputs, reads[0])
    return _broken(reads[0])


def _run(trial: Trial, inputs: Inputs, reads: list[str]) -> None:
    """Run forward and backward, and add to `reads` as "forward aten.nonzero (bank.py:31, in forward)"."""
    leaves = inputs.leaves()
    args = inputs.args(leaves)
    given = [arg for arg in args if isinstance(arg, Tensor)]
    with watching(given, "forward", reads):
        y = outputs(trial.spec.function(*args))
    v = like(y, trial.seed)
    pairs = [(get_gradient_edge(t), w) for t, w in zip(y, v, strict=True) if t.requires_grad]
    ends = [get_gradient_edge(leaf) for leaf in leaves.values()]
    if pairs:
        with watching([*given, *y, *v], "backward", reads):
            # Edges and not tensors: on tensors grad is a torch function itself, inside which no mode sees methods.
            torch.autograd.grad([edge for edge, _ in pairs], ends, [w for _, w in pairs], allow_unused=True)


def _elsewhere(trial: Trial, inputs: Inputs, read: str) -> Finding:
    """Judge a read on a CPU by what happens on the device `meta`, which stands for the others and has no values.

    A check of values that is left to the device elsewhere may read on a CPU: nothing waits there.
    """
    values = {n: v.to("meta") if isinstance(v, Tensor) else v for n, v in inputs.values.items()}
    reads: list[str] = []
    try:
        _run(trial, Inputs(values, inputs.wrt), reads)
    except Exception as error:
        if not reads:
            why = f"on a CPU, {read}; elsewhere, only a CUDA device can say, as meta tensors raise {shown(error)}"
            return Finding(status=Status.NOT_MEASURED, message=why)
        return _broken(read)
    return _broken(read) if reads else Finding(status=Status.HOLDS, message=f"on a CPU alone, {read}: nothing waits")


def _broken(read: str) -> Finding:
    return broken(
        read.replace(" ", " reads a value back to the host: ", 1),
        got=read,
        expected="no read",
        likely=".item(), .tolist(), a branch on a value, or a boolean mask as an index",
    )


def _on_cuda(trial: Trial, inputs: Inputs) -> Finding:
    """Let CUDA itself say whether anything waits: some kernels do, whatever the operation."""
    leaves = inputs.leaves()
    args = inputs.args(leaves)
    v = like(outputs(trial.spec.function(*args)), trial.seed)
    try:
        with _waiting_is_an_error():
            gradients(outputs(trial.spec.function(*args)), leaves, v)
    except Exception as error:
        return raised(error, "forward and backward on CUDA")
    return HOLDS


@contextmanager
def _waiting_is_an_error() -> Iterator[None]:
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


NO_HOST_READ = Law(
    name="no_host_read",
    family="device",
    statement=r"\operatorname{reads}(F) \cup \operatorname{reads}(B) = \varnothing",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=("reads_the_largest_element", "lists_its_cotangent", "counts_with_a_mask"),
)
