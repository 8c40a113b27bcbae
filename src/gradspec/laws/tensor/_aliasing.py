r"""An output shares memory with an argument only if the spec declares it, and then as a view that autograd tracks.

The law checks a plain pass and, if forward mode is promised, a pass with a tangent.

Why it matters: memory that is shared without autograd's knowledge gives silently wrong gradients after the next
in-place operation.

What breaks it: `.data`, numpy and dlpack aliases, a view that the spec does not declare.

Remedy: return a view (`x.view_as(x)`) and declare it in `Effects.view_of`, or return a copy.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Rank, Reason, Trial, broken
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._memory import overlap
from gradspec.laws.tensor.support._passes import THROUGH_BACKWARD, Pass, in_each_pass

#: The cause: a write to the one does not move the version counter of the other.
UNTRACKED = Reason(kind="untracked alias", words="the alias was made with .data, detach() and set_(), numpy or dlpack")


def _check(trial: Trial) -> Finding:
    # What backward returns may well be its cotangent: only the outputs are looked at.
    return in_each_pass(trial, lambda way: HOLDS if way is THROUGH_BACKWARD else _watch(trial, way))


def _watch(trial: Trial, way: Pass) -> Finding:
    inputs = Inputs.of(trial)
    args = way.args(inputs, way.leaves(inputs), seed=trial.seed)
    y = outputs(trial.spec.function(*args))
    for name, arg in zip(inputs.values, args, strict=True):
        if not isinstance(arg, Tensor):
            continue
        for t in y:
            if not overlap(t, arg):
                continue
            is_tracked = _tracked(t, arg)
            if trial.spec.effects.view_of != name:
                view = f"forward returns `{name}` or a view of it: clone() it, or declare Effects(view_of={name!r})"
                return broken(
                    f"the output shares memory with `{name}`, which the spec does not declare",
                    got=f"memory of `{name}`",
                    expected="memory of its own",
                    # A view that autograd knows is as safe as any of torch's.
                    rank=Rank.WASTE if is_tracked else Rank.WRONG,
                    reason=Reason(kind="view", words=view, evidence={"argument": name}) if is_tracked else UNTRACKED,
                )
            if not is_tracked:
                return broken(
                    f"the output shares memory with `{name}`, and autograd does not know it",
                    got="another version counter",
                    expected=f"that of `{name}`, as a view has",
                    reason=UNTRACKED,
                )
    return HOLDS


def _tracked(output: Tensor, arg: Tensor) -> bool:
    """Whether a write to one moves the version counter of the other: a write of no element is enough to tell."""
    before = output._version
    with torch.no_grad():
        part = arg.narrow(0, 0, 0) if arg.ndim else arg
        part.copy_(part.clone())
    return output._version != before


ALIASING = Law(
    name="aliasing",
    family="effects",
    statement=r"\operatorname{mem}(y) \cap \operatorname{mem}(x) \subseteq \text{declared}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
)
