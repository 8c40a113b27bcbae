r"""Forward mode over the backward pass gives the reference's product of Hessian and vector.

The law computes it by `torch.func.jvp` of `torch.func.grad`, and by the gradient of a call with dual tensors.

Why it matters: it is how torch computes a Hessian (`torch.func.hessian`), and the cheapest Hessian-vector product;
backward runs there on an input that carries a tangent.

What breaks it: a forward or a backward that computes something else if its input carries a tangent, `.data` in
backward.

Remedy: compute with torch operations in all three methods, and treat an input with a tangent as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, like, outputs, pushforward
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import reference
from gradspec.spec._gradient import NO_MAP, gradient_of

#: What is compared, and whether it may be off by the rounding of a gradient.
_BY_FUNC = (("gradient under jvp", True), ("Hessian times vector", False))
_BY_DUAL_TENSORS = (("gradient beside a dual tensor", True), ("tangent of the gradient", True))


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if gradient_of(trial.spec.surrogate):
        return not_applicable(NO_MAP)
    supports = trial.spec.supports
    if not (supports.func_grad and supports.double_backward):
        return not_applicable("the spec promises no torch.func.grad, or no second derivative")
    x = inputs.tensors()
    u = like(x, trial.seed)
    loss, argnums = _loss(trial.spec.function, inputs, trial), tuple(range(len(x)))
    expected = pushforward(torch.func.grad(_loss(reference(trial.spec), inputs, trial), argnums), x, u)
    for words, got in (
        (_BY_FUNC, pushforward(torch.func.grad(loss, argnums), x, u)),
        (_BY_DUAL_TENSORS, _by_dual_tensors(loss, x, u)),
    ):
        for (way, is_derivative), mine, theirs in zip(words, got, expected, strict=True):
            for name, a, b in zip(inputs.wrt, mine, theirs, strict=True):
                finding = compare(trial, f"{way} of `{name}`", a, b, is_derivative=is_derivative)
                if finding is not HOLDS:
                    return finding
    return HOLDS


def _by_dual_tensors(loss: Callable[..., Tensor], x: tuple[Tensor, ...], u: tuple[Tensor, ...]) -> Any:
    """Return the gradient, and its tangent, where the arguments are dual tensors that require a gradient."""
    leaves = [t.detach().requires_grad_() for t in x]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(a, b) for a, b in zip(leaves, u, strict=True)]  # type: ignore[no-untyped-call]
        found = torch.autograd.grad(loss(*duals), leaves, allow_unused=True)
        pairs = [(g, None) if g is None else forward_ad.unpack_dual(g) for g in found]  # type: ignore[no-untyped-call]
        return tuple(zip(*pairs, strict=True))


def _loss(function: Callable[..., Any], inputs: Inputs, trial: Trial) -> Callable[..., Tensor]:
    """Return `sum(v |y|^2) / 2`: the square gives a linear function a Hessian too."""

    def loss(*tensors: Tensor) -> Tensor:
        y = outputs(inputs.closed(function)(*tensors))
        v = like(tuple(t.abs() for t in y), trial.seed)
        return torch.stack([(a * (t * t.conj()).real).sum() for a, t in zip(v, y, strict=True)]).sum() / 2

    return loss


FORWARD_OVER_REVERSE = Law(
    name="forward_over_reverse",
    family="derivative",
    scope=Scope.HIGHER,
    statement=r"\operatorname{jvp}(\operatorname{grad} F) = \operatorname{jvp}(\operatorname{grad} r)",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal", "vjp"),
    capability="forward_mode",
)
