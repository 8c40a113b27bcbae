r"""On CUDA the value and the gradient are those on the CPU, within precision.

Why it matters: you debug a model on one device and train it on the other.

What breaks it: separate kernels for the devices, a reduction in another order in a low precision, a default device.

Remedy: compute with the tensors' own device and dtype, and accumulate in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable, shown
from gradspec.laws.tensor.support._call import Inputs, differentiable, fresh, gradients, like, outputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._reference import is_audited, reference


def _check(trial: Trial) -> Finding:
    if not torch.cuda.is_available():
        return Finding(status=Status.NOT_MEASURED, message="there is no CUDA device here")
    if is_audited(trial.spec):
        other = "cpu" if trial.profile.device.startswith("cuda") else "cuda"
        try:
            _on(other, trial.spec.function, trial)
        except Exception as error:  # nobody has promised the other device: a kernel may be for one alone
            return not_applicable(f"on the device {other} it raises {shown(error)}")
    return compare_devices(trial, "cpu", "cuda")


def compare_devices(trial: Trial, first: str, second: str) -> Finding:
    """Compare value and gradients on two devices."""
    function, plain = trial.spec.function, reference(trial.spec)
    mine, theirs = (_on(device, function, trial) for device in (first, second))
    of_plain = [_on(device, plain, trial) for device in (first, second)]
    for name, expected in mine.items():
        got = theirs[name]
        if expected is None or got is None or describe(got) != describe(expected):
            if (expected is None) == (got is None) and describe(got) == describe(expected):
                continue
            return broken(f"{name} on {second} is {describe(got)}, and on {first} {describe(expected)}", argument=name)
        spread = _distance(of_plain[0][name], of_plain[1][name])
        if (finding := _judge(f"{name} on {second} differs from that on {first}", got, expected, spread)) is not HOLDS:
            return finding
    return HOLDS


def _on(device: str, function: Callable[..., Any], trial: Trial) -> dict[str, Tensor | None]:
    """Return value and gradients by name, computed on a device and brought back to the CPU."""
    case = Inputs.of(trial)
    values = {n: fresh(v).to(device) if isinstance(v, Tensor) else v for n, v in case.values.items()}
    inputs = Inputs(values, case.wrt)
    leaves = inputs.leaves()
    y = outputs(function(*inputs.args(leaves)))
    got = gradients(y, leaves, like(y, trial.seed))
    found: dict[str, Tensor | None] = {f"output {k}": t for k, t in enumerate(y)}
    found |= {f"gradient of `{name}`": gradient for name, gradient in got.items()}
    return {name: None if t is None else t.detach().cpu() for name, t in found.items()}


def _distance(a: Tensor | None, b: Tensor | None) -> Tensor | float:
    return 0.0 if a is None or b is None or not differentiable(a) else (a - b).abs()


def _judge(said: str, got: Tensor, expected: Tensor, spread: Tensor | float) -> Finding:
    """Allow twice the distance of plain operations between the devices, and 8 units of rounding."""
    if got.numel() == 0 or torch.equal(got, expected):
        return HOLDS
    rounding = torch.finfo(got.dtype).eps if differentiable(got) else 0.0
    got, expected = (t if differentiable(t) else t.double() for t in (got, expected))
    error = (got - expected).abs()
    same = (got == expected) | (got.isnan() & expected.isnan())
    wrong = ~same & ~(error <= 2 * spread + 8 * rounding * (expected.abs() + expected.abs().max()))
    if not bool(wrong.any()):
        return HOLDS
    worst = int(torch.where(wrong, error.nan_to_num(nan=torch.inf), error.new_zeros(())).flatten().argmax())
    return broken(
        said,
        argument=describe(expected),
        got=str(got.flatten()[worst].item()),
        expected=str(expected.flatten()[worst].item()),
        likely="the function computes something else, or in another precision, on one of the devices",
    )


PARITY = Law(
    name="parity",
    family="device",
    statement=r"F_{\text{CUDA}}(x) = F_{\text{CPU}}(x)",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
)
