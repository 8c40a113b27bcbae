r"""Differentiating the backward pass gives the second derivative of the surrogate.

Why it matters: gradient penalties, influence functions and meta-learning differentiate a gradient; a detached
backward drops their term silently.

What breaks it: `.data` or numpy in backward, intermediates kept on ctx, `once_differentiable` (which does not raise
in a gradient penalty).

Remedy: compute backward in plain differentiable torch from saved tensors, or promise `double_backward=False` and
raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor._call import Inputs, like, outputs
from gradspec.laws.tensor._compare import compare
from gradspec.laws.tensor._reference import reference


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    got, expected = _penalty(trial.spec.function, inputs, trial), _penalty(reference(trial.spec), inputs, trial)
    likely = "backward is cut from the graph: look for .data, detach(), numpy, or an intermediate kept on ctx"
    for name, second in expected.items():
        finding = compare(trial, f"second derivative with respect to {name}", got[name], second, likely=likely)
        if finding is not HOLDS:
            return finding
    return HOLDS


def _penalty(function: Callable[..., Any], inputs: Inputs, trial: Trial) -> dict[str, Tensor | None]:
    r"""Return the gradients of `<w, g>`, where `g` is the gradient of `sum(v |y|^2) / 2`, in x and in v.

    The square makes the cotangent depend on x, so that a function that is linear has a second derivative to get wrong.
    """
    leaves = inputs.leaves()
    y = outputs(function(*inputs.args(leaves)))
    v = tuple(t.detach().requires_grad_() for t in like(tuple(t.abs() for t in y), trial.seed))
    loss = torch.stack([(a * (t * t.conj()).real).sum() for a, t in zip(v, y, strict=True)]).sum() / 2
    every = {**{f"`{name}`": leaf for name, leaf in leaves.items()}, "the cotangent": v[0]}
    none = dict.fromkeys(every)
    if not loss.requires_grad:
        return none
    first = torch.autograd.grad(loss, list(leaves.values()), create_graph=True, allow_unused=True)
    w = like(tuple(leaves.values()), trial.seed + 1)
    terms = [(a.conj() * g).real.sum() for a, g in zip(w, first, strict=True) if g is not None]
    if not terms or not (total := torch.stack(terms).sum()).requires_grad:
        return none
    return dict(zip(every, torch.autograd.grad(total, list(every.values()), allow_unused=True), strict=True))


SECOND_ORDER = Law(
    name="second_order",
    family="derivative",
    statement=r"D_x \langle w, \bar{x}(x, v) \rangle = D_x \langle w, Ds(x)^{\top} v \rangle",
    check=_check,
    doc=__doc__ or "",
    needs_spec=True,
    requires=("primal",),
    promise="double_backward",
    specimens=("data_in_backward", "penalty_dropped"),
)
