"""A hook that a call leaves on a tensor that it is given: the next call with this tensor adds another one."""

from __future__ import annotations

from torch import Tensor

from gradspec._one_line import listed
from gradspec.law import HOLDS, Finding, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._compare import compare_all

#: Why, and what to do.
LEFT = "forward registers a hook on {0}, which stays there: hook `{1}.view_as({1})`, and compute with that"


def left_hook(trial: Trial) -> Finding:
    """Return what is said of a hook that a call leaves on an argument, where two calls have another gradient by it."""
    inputs = Inputs.of(trial)
    leaves = inputs.leaves()
    args = inputs.args(leaves)
    y = outputs(trial.spec.function(*args))
    hooked = [name for name, leaf in leaves.items() if leaf._backward_hooks]
    if not hooked:
        return HOLDS
    v = like(tuple(t for t in y if isinstance(t, Tensor) and t.requires_grad), trial.seed)
    once = gradients(y, leaves, v)
    again = gradients(outputs(trial.spec.function(*inputs.args(leaves))), leaves, v)
    finding = compare_all(trial, "gradient of a second call with the same tensors", again, once)
    words = LEFT.format(listed(hooked), hooked[0])
    return finding.because(Reason(kind="hook", words=words, evidence={"arguments": hooked}))
