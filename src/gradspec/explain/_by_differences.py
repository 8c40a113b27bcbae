"""Explain a wrong gradient if only forward is known: compare it with finite differences.

The derivative of forward, element by element, stands in for the surrogate of a spec. With it an audit compares numbers,
and asks the same tests that a spec would let it ask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradspec.explain._reasons import with_reason
from gradspec.explain._wrong import MENDED
from gradspec.law import Finding, Reason, Status, Trial
from gradspec.laws.tensor._vjp import VJP
from gradspec.laws.tensor.support._call import WIDE, Inputs, differentiable, vjp
from gradspec.laws.tensor.support._compare import largest
from gradspec.spec import Accuracy

#: How many numbers are moved, one at a time, at most.
ELEMENTS = 512
#: How far, and where something is computed in float32, which leaves no digit of that step. Two halvings leave an error
#: of its sixth power.
_STEP, _LARGER = 1e-3, 3e-2
#: To how much of itself a derivative is known then.
_KNOWN = 1e-7
#: How many times as far as the last extrapolation moves it a derivative may be off: rounding adds up.
_MARGIN = 20


def by_differences(trial: Trial) -> Finding | None:
    """Return how the gradients differ from the derivative of forward, with the cause where a test shows one.

    None where the arguments are too many or not in double precision, or the derivative is not to be had.
    """
    inputs = Inputs.of(trial)
    x = inputs.tensors()
    if any(t.dtype not in WIDE for t in x) or not 0 < sum(_real(t).numel() for t in x) <= ELEMENTS:
        return None

    asked = _asked(trial, inputs, _STEP)
    if asked.spec.accuracy.rtol > _KNOWN:
        asked = min(asked, _asked(trial, inputs, _LARGER), key=lambda one: one.spec.accuracy.rtol)
    finding = VJP.check(asked)
    if finding.status is not Status.BROKEN or not finding.index:
        return None
    found = with_reason(VJP, lambda: asked, finding)
    # Which arguments are wrong is asked of each by itself, with the factor where it is one.
    return found.because(None) if found.reason is not None and found.reason.kind == "of arguments" else found


def line_by_differences(trial: Trial) -> Reason | None:
    """Return the line of backward that makes a gradient wrong, where the derivative of forward follows from another."""
    found = by_differences(trial)
    words = None if found is None or found.reason is None else found.reason.evidence.get(MENDED)
    return Reason(kind="repair", words=words) if words else None


def _asked(trial: Trial, inputs: Inputs, step: float) -> Trial:
    """Return the call of a function whose surrogate has the derivatives that differences of a step find."""

    def differentiated(*args: Any) -> Any:
        given = Inputs(dict(zip(inputs.values, args, strict=True)), inputs.wrt)
        others = tuple(_key(value) for name, value in given.values.items() if name not in given.wrt)
        moving = (given.values[name] for name in given.wrt)
        call = given.closed(trial.spec.function)
        return _Differences.apply(call, known, step, others, *moving)  # type: ignore[no-untyped-call]  # torch's own

    known: dict[object, list[tuple[Tensor, Tensor]]] = {}
    differentiated.__signature__ = inspect.signature(trial.spec.primal)  # type: ignore[attr-defined]  # what it reads
    differentiated.__dict__["gradspec_audited"] = True
    spec = replace(trial.spec, primal=differentiated, surrogate=differentiated, gradient=None, zero_gradient=())
    vjp(differentiated, inputs, seed=trial.seed)
    off = _MARGIN * max(_off(*one) for slopes in known.values() for one in slopes)
    return replace(
        trial,
        spec=replace(spec, accuracy=Accuracy(rtol=off)),
        profile=replace(trial.profile, rtol=_KNOWN),
    )


class _Differences(Function):
    """A function whose gradient is made of its central differences; they are made once at each point."""

    @staticmethod
    def forward(
        ctx: Any,
        call: Callable[..., Any],
        known: dict[object, list[tuple[Tensor, Tensor]]],
        step: float,
        others: object,
        *x: Tensor,
    ) -> Any:
        ctx.call, ctx.known, ctx.step, ctx.others = call, known, step, others
        ctx.save_for_backward(*x)
        y = _values(call, x)
        with torch.enable_grad():
            told = call(*(t.detach().clone().requires_grad_() for t in x))
        ctx.mark_non_differentiable(*(t for t, one in zip(y, told, strict=True) if not one.requires_grad))
        ctx.several = len(y) > 1
        return y if ctx.several else y[0]

    @staticmethod
    def backward(ctx: Any, *v: Tensor) -> Any:
        x = ctx.saved_tensors
        point = (ctx.others, *map(_key, x))
        if point not in ctx.known:
            ctx.known[point] = [_slopes(ctx.call, x, place, ctx.step) for place in range(len(x))]
        # Of complex numbers the two parts by themselves: torch's gradient of L is dL/d(re x) + i dL/d(im x).
        weights = torch.cat([_real(t).flatten() for t in v if differentiable(t)])
        found = zip(ctx.known[point], x, strict=True)
        return None, None, None, None, *(_like(slopes @ weights, t) for (slopes, _), t in found)


def _off(slopes: Tensor, changes: Tensor) -> float:
    """Return how far a gradient may be off, of the largest: what the last extrapolation has changed in all outputs."""
    return largest(changes.norm(dim=1)) / (largest(slopes.norm(dim=1)) or 1.0)


def _slopes(call: Callable[..., Any], x: tuple[Tensor, ...], place: int, step: float) -> tuple[Tensor, Tensor]:
    """Return the derivatives of all outputs along each element of an argument, each in a row, and how far they move."""
    found = [_slope(call, x, place, k, step) for k in range(_real(x[place]).numel())]
    return torch.stack([slope for slope, _ in found]), torch.stack([change for _, change in found])


def _slope(call: Callable[..., Any], x: tuple[Tensor, ...], place: int, k: int, step: float) -> tuple[Tensor, Tensor]:
    """Return the derivatives of all outputs along one element, extrapolated twice, and what the last time changes."""

    def along(h: float) -> Tensor:
        moved = [t.clone() for t in x]
        _real(moved[place])[at] += h
        return torch.cat([_real(t).flatten() for t in _values(call, tuple(moved)) if differentiable(t)])

    at = torch.unravel_index(torch.tensor(k), _real(x[place]).shape)
    size = step * max(1.0, abs(float(_real(x[place])[at])))
    first, second, third = ((along(h) - along(-h)) / (2 * h) for h in (size, size / 2, size / 4))
    once, again = (4 * second - first) / 3, (4 * third - second) / 3
    last = (16 * again - once) / 15
    return last, last - again


def _real(t: Tensor) -> Tensor:
    """Return a tensor of real numbers: of complex ones the parts, in one more dimension."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _like(numbers: Tensor, t: Tensor) -> Tensor:
    numbers = numbers.view(_real(t).shape)
    return torch.view_as_complex(numbers) if t.is_complex() else numbers


def _key(value: Any) -> object:
    if not isinstance(value, Tensor):
        return repr(value)
    return value.dtype, value.shape, value.stride(), tuple(value.detach().flatten().tolist())


def _values(call: Callable[..., Any], x: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    with torch.enable_grad():  # what forward computes may depend on whether a gradient is asked for
        return tuple(t.detach().clone() for t in call(*(t.detach().clone().requires_grad_() for t in x)))
