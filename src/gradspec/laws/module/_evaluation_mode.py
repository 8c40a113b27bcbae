r"""In evaluation a call and its gradient are the same each time, draw no random number and leave the state as it was.

Why it matters: a saliency map or an adversarial gradient of a network that still draws noise is wrong, silently.

What breaks it: noise that looks at a flag in forward and not in backward; a buffer that moves in evaluation.

Remedy: draw and move only while `self.training`, and keep for backward what forward has drawn.
"""

from __future__ import annotations

import torch
from torch import nn

from gradspec._process_state import seed_torch
from gradspec.law import HOLDS, Finding, Law, ModuleTrial, Reason, broken
from gradspec.laws.module.support._build import evaluate, forward_backward, tensors, used
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._memory import first_change, snapshots


def _check(trial: ModuleTrial) -> Finding:
    finding = _judged(trial, used(trial))
    if finding is HOLDS:
        return finding
    module = used(trial)
    training = {name: part for name, part in module.named_modules() if part.training}
    for part in training.values():
        part.training = False  # eval() did not reach it
    if not training or _judged(trial, module) is not HOLDS:
        return finding
    names = ", ".join(f"`{name}`" for name in training)
    said = f"right once {names} is in evaluation: eval() leaves it in training"
    return finding.because(Reason(kind="wrong mode", words=said, evidence={"modules": [*training]}))


def _judged(trial: ModuleTrial, module: nn.Module) -> Finding:
    before = snapshots(tensors(module))
    for what, run in (("forward", evaluate), ("backward", forward_backward)):
        seed_torch(trial.seed)
        drawn = _generators()
        run(trial, module)
        if any(not torch.equal(a, b) for a, b in zip(drawn, _generators(), strict=True)):
            return broken(f"{what} draws random numbers in evaluation")
        if changed := first_change(before, tensors(module)):
            said = f"{what} writes to `{changed.name}` in evaluation: {changed.how}"
            return broken(said, argument=f"`{changed.name}`", **changed.place)
    first, second = (forward_backward(trial, module) for _ in range(2))
    return compare_all(trial, "second evaluation", second, first, is_derivative=False)


def _generators() -> list[torch.Tensor]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *cuda]


EVALUATION_MODE = Law(
    name="evaluation_mode",
    family="modules",
    statement=r"\text{evaluation} \Rightarrow F, \nabla F \text{ are functions}",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
)
