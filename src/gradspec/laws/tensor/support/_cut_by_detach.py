"""Whether a surrogate stops, by `detach()`, what its gradient depends on: then it has a first derivative only.

The usual surrogate of a quantiser with a learned scale is one. It passes rounding straight through, as
`(q + (q.round() - q).detach()) * scale`, and the gradient of the scale is made of what is detached there. In the second
derivative autograd holds that still. A backward pass that is differentiated moves it, and is right to. Where the
gradient depends on nothing that is detached, as in `x + (x.round() - x).detach()`, a second derivative is well defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._compare import distance, largest
from gradspec.laws.tensor.support._detached import DETACH
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._penalty import penalty
from gradspec.laws.tensor.support._reference import reference
from gradspec.spec import FunctionSpec
from gradspec.spec._gradient import declared_gradient

#: Why no second derivative of such a surrogate is asked for.
FIRST_ONLY = (
    "the surrogate stops by detach() what its gradient depends on, so it says first derivatives only; promise "
    "double_backward=True to hold second ones to it all the same"
)
#: Why a backward pass that is differentiated differs from it.
CUT_IN_SURROGATE = Reason(
    kind="cut in surrogate",
    words="the detach() of the surrogate, not one in backward: the surrogate holds still what its gradient depends on, "
    "and backward moves it; write the surrogate without detach(), or do not promise double_backward",
)
#: The part of its largest element by which a second derivative is another one.
OTHER = 1e-6


def is_cut_by_detach(trial: Trial, inputs: Inputs) -> bool:
    """Return whether the second derivative of the surrogate lacks what goes through its `detach()`."""
    return bool(quietly(lambda: _is_cut(trial, inputs)))


def moves_what_is_detached(trial: Trial, inputs: Inputs) -> bool:
    """Return whether the function has the second derivatives of the gradient in which nothing is held still."""

    def same() -> bool:
        mine = _second(trial.spec.function, trial, inputs)
        return _is_cut(trial, inputs) and not _differ(mine, _second(_moving(trial.spec, inputs), trial, inputs))

    return bool(quietly(same))


def _is_cut(trial: Trial, inputs: Inputs) -> bool:
    if not _stops_a_gradient(trial.spec, inputs):
        return False
    still, moving = reference(trial.spec), _moving(trial.spec, inputs)
    return _differ(_second(still, trial, inputs), _second(moving, trial, inputs))


def _second(function: Callable[..., Any], trial: Trial, inputs: Inputs) -> dict[str, Tensor | None]:
    found = penalty(function, inputs, trial.seed).found
    return {name: derivative for name, derivative in found.items() if name.startswith("second")}


def _differ(one: dict[str, Tensor | None], other: dict[str, Tensor | None]) -> bool:
    for name, a in one.items():
        b = other[name]
        if a is None or b is None:
            if any(t is not None and bool(t.any()) for t in (a, b)):
                return True
        elif distance(a, b) > OTHER * max(largest(a), largest(b)):
            return True
    return False


def _stops_a_gradient(spec: FunctionSpec, inputs: Inputs) -> bool:
    with _Moving() as seen:
        spec.surrogate(*inputs.args(inputs.leaves()))
    return any(t.requires_grad for t in seen.stopped)


def _moving(spec: FunctionSpec, inputs: Inputs) -> Callable[..., Any]:
    """Return the primal with the gradient of the surrogate behind it, in which what is detached moves."""

    def gradient(given: Any, _: Any, cotangent: Any) -> dict[str, Tensor | None]:
        values = dict(zip(inputs.values, given, strict=True))
        #   g(x) = D_1 s(x, c)^T v  at  c = c(x):  first c with its graph, then the derivative with c in place.
        with torch.enable_grad():
            with _Moving() as seen:
                spec.surrogate(*values.values())
            alias = {name: values[name].view_as(values[name]) for name in inputs.wrt}
            alias = {name: t if t.requires_grad else t.requires_grad_() for name, t in alias.items()}
            with _Moving(iter(seen.stopped)):
                y = outputs(spec.surrogate(*{**values, **alias}.values()))
            pairs = [(t, v) for t, v in zip(y, outputs(cotangent), strict=True) if t.requires_grad]
            found = torch.autograd.grad(
                [t for t, _ in pairs], list(alias.values()), [v for _, v in pairs], create_graph=True, allow_unused=True
            )
        return dict(zip(alias, found, strict=True))

    return reference(replace(spec, surrogate=declared_gradient(spec.primal, gradient), gradient=None, formula=None))


class _Moving(TorchFunctionMode):
    """Lets a gradient through each `detach()` and keeps what goes in, or hands out what was kept, in the same order."""

    def __init__(self, kept: Iterator[Tensor] | None = None) -> None:
        super().__init__()
        self.stopped: list[Tensor] = []
        self._kept = kept

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in DETACH:
            return func(*args, **(kwargs or {}))
        found = args[0] if self._kept is None else next(self._kept)
        self.stopped.append(found)
        return found.view_as(found)
