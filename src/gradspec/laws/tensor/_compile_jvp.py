r"""`torch.compile` of a function that calls `torch.func.jvp` gives the declared derivative.

Why it matters: Hessian-vector products and forward-mode solvers are compiled for speed.

What breaks it: a Function that defines `jvp` and is not allowed in the graph.

Remedy: allow the class in the graph (`torch.compiler.allow_in_graph`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from gradspec._scope import Scope
from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs, pushforward
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._reference import is_audited, is_stand_in, reference
from gradspec.laws.tensor.support._symmetric import kept_symmetric
from gradspec.laws.tensor.support._transform import DROPPED, frozen, plains_of, tracing_backend
from gradspec.spec._gradient import NO_MAP, gradient_of

#: The most elements of an output whose derivative is asked of backward one by one.
LARGEST = 4096


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if gradient_of(trial.spec.surrogate):
        return not_applicable(NO_MAP)
    x = inputs.tensors()
    u = like(x, trial.seed)
    if is_stand_in(trial.spec.surrogate):
        # Of a function of one triangle, backward gives the derivative along symmetric directions.
        u = kept_symmetric(inputs, u, inputs.closed(trial.spec.function)) or u
    function = frozen(trial.spec.function, inputs)

    def along(x: tuple[Tensor, ...], u: tuple[Tensor, ...]) -> Any:
        return torch.func.jvp(function, x, u)

    torch._dynamo.reset()
    y, y_dot = torch.compile(along, fullgraph=True, backend=tracing_backend(trial))(x, u)
    expected = _expected(trial, inputs, x, u)
    for what, got, right in zip(("value", "tangent of the output"), (y, y_dot), expected, strict=True):
        for mine, theirs in zip(outputs(got), right, strict=True):
            finding = compare(trial, f"{what} under torch.compile of torch.func.jvp", mine, theirs)
            if finding is not HOLDS:
                if is_audited(trial.spec) and _is_same(trial.spec.function, inputs, x, u, outputs(y_dot)):
                    return not_applicable("forward mode gives this derivative in eager mode too: `adjoint` is about it")
                return finding.because(DROPPED) if _is_plain(trial, inputs, x, u, outputs(y_dot)) else finding
    return HOLDS


def _expected(trial: Trial, inputs: Inputs, x: tuple[Tensor, ...], u: tuple[Tensor, ...]) -> Any:
    """Return value and tangent of the reference."""
    right, leaves = reference(trial.spec), inputs.leaves()
    if is_stand_in(trial.spec.surrogate):
        # In an audit the backward pass says what the derivative is, for a function without forward mode too: with J
        # its Jacobian, element k of J u is <J^T e_k, u>.
        y = outputs(right(*inputs.args(leaves)))
        if sum(t.numel() for t in y) <= LARGEST:
            return tuple(t.detach() for t in y), tuple(_along(t, leaves, u) for t in y)
    return pushforward(inputs.closed(right), x, u)


def _along(y: Tensor, leaves: Mapping[str, Tensor], u: tuple[Tensor, ...]) -> Tensor:
    """Return the derivative of an output along u, an element of the output at a time."""
    found = torch.zeros(y.numel(), dtype=y.dtype)
    for k in range(y.numel() if y.requires_grad else 0):
        unit = torch.zeros_like(found)
        unit[k] = 1
        of_k = gradients((y,), leaves, (unit.view(y.shape).to(y.device),), retain_graph=True)
        terms = [(g.conj() * t).sum() for g, t in zip(of_k.values(), u, strict=True) if g is not None]
        found[k] = torch.stack(terms).sum() if terms else 0
    return found.view(y.shape).to(y.device)


def _is_plain(
    trial: Trial, inputs: Inputs, x: tuple[Tensor, ...], u: tuple[Tensor, ...], y_dot: tuple[Tensor, ...]
) -> bool:
    """Whether these are the tangents of plain forward, or none at all."""
    if not any(bool(t.any()) for t in y_dot):
        return True
    return any(_is_same(function, inputs, x, u, y_dot) for function in plains_of(trial.spec))


def _is_same(
    function: Callable[..., Any],
    inputs: Inputs,
    x: tuple[Tensor, ...],
    u: tuple[Tensor, ...],
    y_dot: tuple[Tensor, ...],
) -> bool:
    """Whether forward mode gives these tangents in eager mode; not where it refuses."""
    with suppress(Exception):
        eager = pushforward(inputs.closed(function), x, u)[1]
        return all(torch.allclose(a, b) for a, b in zip(y_dot, eager, strict=True))
    return False


COMPILE_JVP = Law(
    name="compile_jvp",
    family="transforms",
    scope=Scope.COMPILE,
    statement=r"\operatorname{compile}(\operatorname{jvp}(F)) = \operatorname{jvp}(r)",
    check=_check,
    doc=__doc__ or "",
    cost="compile",
    requires=("primal", "vjp"),
    capability="compile_jvp",
)
