r"""No bit and no version counter of an argument moves in forward, and in backward only of what is declared.

Why it matters: an argument that changes under the caller is a silent error somewhere else.

What breaks it: an in-place operation on an argument, on a view of it, or through `.data` and numpy.

Remedy: compute out of place; declare what is written on purpose.
"""

from __future__ import annotations

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, broken
from gradspec.laws.tensor._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor._memory import first_change, snapshots


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    args = inputs.args(leaves)
    tensors = {name: arg for name, arg in zip(inputs.values, args, strict=True) if isinstance(arg, Tensor)}
    before = snapshots(tensors)
    y = outputs(trial.spec.function(*args))
    if changed := first_change(before, tensors):
        return broken(f"forward writes to `{changed[0]}`: {changed[1]}", argument=f"`{changed[0]}`")
    if leaves:
        gradients(y, leaves, like(y, trial.seed))
        undeclared = {name: snapshot for name, snapshot in before.items() if name not in trial.spec.effects.writes}
        if changed := first_change(undeclared, tensors):
            return broken(f"backward writes to `{changed[0]}`: {changed[1]}", argument=f"`{changed[0]}`")
    return HOLDS


INPUTS_UNTOUCHED = Law(
    name="inputs_untouched",
    family="effects",
    statement=r"x_{\text{after}} = x_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=("writes_to_its_input",),
)
