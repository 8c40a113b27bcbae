r"""Images and parameters in `torch.channels_last` give the same outputs and gradients.

Why it matters: convolutions are faster in that layout, and a training script asks for it in one line.

What breaks it: `view` on features, which assumes that channels come before pixels in memory.

Remedy: write `reshape` or `torch.flatten`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.law import Finding, Law, ModuleTrial, not_applicable
from gradspec.laws.module.support._build import forward_backward, used
from gradspec.laws.tensor.support._compare import compare_all


def _check(trial: ModuleTrial) -> Finding:
    if not any(isinstance(value, Tensor) and value.ndim == 4 for value in trial.case.inputs or ()):
        return not_applicable("no input of four dimensions in this case")
    expected = forward_backward(trial, used(trial))
    module = used(trial)
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types this form without it
    got = forward_backward(trial, module, layout=torch.channels_last)
    return compare_all(trial, "channels-last", got, expected)


CHANNELS_LAST = Law(
    name="channels_last",
    family="modules",
    statement=r"F(x_{\text{NHWC}}) = F(x_{\text{NCHW}})",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
    capability="channels_last",
)
