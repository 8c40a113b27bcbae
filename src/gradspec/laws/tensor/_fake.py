r"""On fake tensors, forward and backward give the shapes, dtypes, strides and devices that they give on real ones.

Why it matters: compilers, exporters and memory estimators run a function on tensors without values first, and plan
memory by what they see.

What breaks it: a branch on a value, numpy in forward or backward, a custom operator whose fake kernel disagrees with
the real one.

Remedy: keep values out of Python's control flow, and hold `register_fake` to the real kernel.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Reason, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._memory import telling_strides


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    real = _run(trial, Inputs(dict(zip(inputs.values, inputs.args(), strict=True)), inputs.wrt))
    # A kernel of Triton reads the memory of a fake tensor, which has none: that would end all work on a CUDA device.
    with FakeTensorMode() as mode, patch.object(FakeTensor, "data_ptr", _no_memory):
        values = {n: mode.from_tensor(v) if isinstance(v, Tensor) else v for n, v in inputs.values.items()}
        fake = _run(trial, Inputs(values, inputs.wrt), tuple(t for n, t in real.items() if n.startswith("cotangent")))
    for name, expected in real.items():
        if (got := _kind(fake[name])) != (right := _kind(expected)):
            return broken(
                f"{name} is another kind of tensor on fake tensors than on real ones",
                argument=name,
                got=got,
                expected=right,
                reason=Reason(
                    kind="fake tensor",
                    words="a fake kernel disagrees with the real one, or the code asks which kind of tensor it has",
                ),
            )
    return HOLDS


def _run(trial: Trial, inputs: Inputs, v: tuple[Tensor, ...] = ()) -> dict[str, Any]:
    """Return outputs, cotangents and gradients by name; the real cotangents are drawn, the fake ones are like them."""
    leaves = {name: inputs.values[name].detach().requires_grad_() for name in inputs.wrt}
    y = outputs(trial.spec.function(*(leaves.get(name, value) for name, value in inputs.values.items())))
    v = tuple(t.new_ones(t.shape) for t in y) if v else like(y, trial.seed)
    found: dict[str, Any] = {f"output {k}": t for k, t in enumerate(y)}
    found |= {f"cotangent {k}": t for k, t in enumerate(v)}
    return found | {f"the gradient of `{name}`": g for name, g in gradients(y, leaves, v).items()}


def _no_memory(_: FakeTensor) -> int:
    raise RuntimeError("data_ptr() of a fake tensor, which has no memory")


def _kind(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    return f"{describe(value)} on {value.device}, strides {telling_strides(value)}"


FAKE = Law(
    name="fake",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{type}(F(\operatorname{fake}(x))) = \operatorname{type}(F(x))",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    capability="fake",
)
