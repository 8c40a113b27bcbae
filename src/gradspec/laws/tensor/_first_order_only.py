r"""Where only first derivatives are promised, a second one raises, in a gradient penalty too.

Why it matters: `once_differentiable` raises only if the cotangent requires grad. In a gradient penalty it does not,
and the penalty is dropped from the loss without a word.

What breaks it: only `once_differentiable`, a backward on `.data` or numpy.

Remedy: route the gradient through a Function of the cotangent and of the saved tensors whose backward raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, like, outputs
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.laws.tensor.support._dense import dense
from gradspec.laws.tensor.support._reference import reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if trial.spec.supports.double_backward is not False:
        return not_applicable("the law second_order holds second derivatives: a refusal of them is not promised")
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    for name, of_cotangent in (("a gradient penalty", False), ("the derivative of the gradient in v", True)):
        expected = _second(trial, inputs, reference(trial.spec), of_cotangent)
        try:
            got = _second(trial, inputs, trial.spec.function, of_cotangent)
        except Exception:  # the refusal that was promised
            continue
        said = f"{name} is not refused: the term that goes through the function is lost silently"
        likely = "once_differentiable, .data or detach() in backward"
        if (finding := compare_all(trial, "second derivative", got, expected, said=said, likely=likely)) is not HOLDS:
            return finding
    return HOLDS


def _second(trial: Trial, inputs: Inputs, function: Callable[..., Any], of_cotangent: bool) -> dict[str, Tensor | None]:
    """Return the derivatives of `sum(|x_bar|^2 + |x|^2)`: the second term keeps the loss in a graph."""
    leaves = inputs.leaves()
    y = outputs(function(*inputs.args(leaves)))
    v = tuple(t.requires_grad_(of_cotangent) for t in like(y, trial.seed))
    tracked = [(t, w) for t, w in zip(y, v, strict=True) if t.requires_grad]
    first = torch.autograd.grad(
        [t for t, _ in tracked], list(leaves.values()), [w for _, w in tracked], create_graph=True, allow_unused=True
    )
    terms = [g for g in (*map(dense, first), *leaves.values()) if g is not None]
    total = torch.stack([(t * t.conj()).real.sum() for t in terms]).sum()
    every = {**leaves, **({f"v{k}": w for k, (_, w) in enumerate(tracked)} if of_cotangent else {})}
    second = torch.autograd.grad(total, list(every.values()), allow_unused=True)
    return {name: dense(gradient) for name, gradient in zip(every, second, strict=True)}


FIRST_ORDER_ONLY = Law(
    name="first_order_only",
    family="derivative",
    scope=Scope.HIGHER,
    statement=r"D_x \lVert \bar{x}(x, v) \rVert^2 \text{ raises}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal", "vjp"),
    needs_spec=True,
)
