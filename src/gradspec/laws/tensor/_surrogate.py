r"""The surrogate's autograd derivative is its numerical derivative.

Why it matters: all derivative laws compare with the surrogate, so the surrogate itself is compared with
extrapolated central differences, with an error bar.

What breaks it: a spec whose surrogate uses `detach`, rounds, or is itself a custom Function with a wrong backward.

Remedy: write the surrogate in plain differentiable torch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs, StandInError, fresh, like, outputs
from gradspec.laws.tensor.support._differences import Slope, double, inner, slope
from gradspec.laws.tensor.support._reference import is_stand_in, on_spec_side


def _check(trial: Trial) -> Finding:
    inputs = Inputs.of(trial)
    if not inputs.wrt:
        return not_applicable("no floating-point input in this case")
    if any(inputs.values[name].numel() == 0 for name in inputs.wrt):
        return not_applicable("a zero-size input has no direction to move in")
    try:
        return _twice(trial, Inputs({name: double(value) for name, value in inputs.values.items()}, inputs.wrt))
    except StandInError:  # an audit of a function that takes its own dtype only
        return _twice(trial, inputs)


def _twice(trial: Trial, inputs: Inputs) -> Finding:
    findings = []
    for attempt in range(2):  # broken needs two failures, in fresh directions
        finding = _one_direction(trial, inputs, trial.seed + attempt)
        if finding.status is Status.INCONCLUSIVE:  # where x is small the surrogate may turn within a step
            in_proportion = _one_direction(trial, inputs, trial.seed + attempt, in_proportion=True)
            finding = finding if in_proportion.status is Status.INCONCLUSIVE else in_proportion
        findings.append(finding)
        if findings[-1].status is not Status.BROKEN:
            return findings[-1]
    return findings[0]


def _one_direction(trial: Trial, inputs: Inputs, seed: int, *, in_proportion: bool = False) -> Finding:
    x = inputs.tensors()
    u = tuple(t / 9 for t in like(x, seed))
    if in_proportion:  # an element moves by a share of itself
        u = tuple(t * a.abs().clamp(max=1) for t, a in zip(u, x, strict=True))
    surrogate = inputs.closed(lambda *args: on_spec_side("surrogate", trial.spec.surrogate, *args))
    v = like(tuple(t.detach() for t in surrogate(*x)), seed + 1)

    leaves = [fresh(t).requires_grad_() for t in x]
    y = outputs(surrogate(*leaves))
    if is_stand_in(trial.spec.surrogate) and any(t.requires_grad for t in y):
        # `mark_non_differentiable`, integers: what carries no gradient moves with the arguments all the same.
        v = tuple(w if t.requires_grad else torch.zeros_like(w) for w, t in zip(v, y, strict=True))

    def along(step: float) -> float:
        moved = [a + step * b for a, b in zip(x, u, strict=True)]
        if is_stand_in(trial.spec.surrogate):  # what forward computes may depend on whether a gradient is asked for
            moved = [t.requires_grad_() for t in moved]
        y = surrogate(*moved)
        return sum(inner(w, t) for w, t in zip(v, y, strict=True))

    y_and_v = [(t, w) for t, w in zip(y, v, strict=True) if t.requires_grad]
    exact = 0.0
    if y_and_v:
        grads = torch.autograd.grad([t for t, _ in y_and_v], leaves, [w for _, w in y_and_v], allow_unused=True)
        exact = sum(inner(g, b) for g, b in zip(grads, u, strict=True) if g is not None)
    if not math.isfinite(exact):
        said = f"the gradient along a direction is {exact:g}: no numerical derivative compares with it"
        return Finding(status=Status.INCONCLUSIVE, message=said)
    numeric = slope(along)
    # Of the value itself and not of the sum: rounding of the terms is what the bar cannot go below.
    size = sum(float((w * t).detach().abs().sum()) for w, t in zip(v, y, strict=True))
    scale, dtype = max(abs(exact), abs(numeric.value), size), x[0].dtype.to_real()
    if not numeric.is_clear(scale, dtype):
        said = f"the error bar {numeric.bar:.1e} of the numerical derivative is too wide"
        return Finding(status=Status.INCONCLUSIVE, message=said)
    if numeric.agrees(exact, scale, dtype):
        return HOLDS
    if is_stand_in(trial.spec.surrogate) and numeric == Slope(0.0, 0.0):
        said = "forward is constant around here: backward applies the derivative of another function, or a wrong one"
        why = "meant so, as in a straight-through estimator: then a spec names the surrogate"
        return Finding(status=Status.INCONCLUSIVE, message=said, likely=why)
    given = {"got": f"{exact:.12g}", "expected": str(numeric)}
    if is_stand_in(trial.spec.surrogate):
        return broken(
            "backward does not apply the derivative of what forward computes",
            argument="directional derivative",
            likely="a wrong backward; or meant so, as in a straight-through estimator: then a spec names the surrogate",
            **given,
        )
    if _is_straight_through(trial, inputs):
        return not_applicable("the surrogate is the primal with gradients stopped: autograd says its derivative")
    return broken(
        "the surrogate's autograd derivative is not its numerical one",
        argument="directional derivative of the surrogate",
        likely="the surrogate uses .data, rounding or a custom backward",
        **given,
    )


class _Watching(TorchFunctionMode):
    """Whether a gradient is stopped by name."""

    stopped = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.stopped = self.stopped or getattr(func, "__name__", "") in ("detach", "detach_")
        return func(*args, **(kwargs or {}))


def _is_straight_through(trial: Trial, inputs: Inputs) -> bool:
    """Whether the surrogate is the primal with another gradient, `s + (p - s).detach()`: it stops some on purpose."""
    spec, watching = trial.spec, _Watching()
    with watching:
        s = outputs(spec.surrogate(*inputs.args()))
    p = outputs(spec.primal(*inputs.args()))
    return (
        watching.stopped
        and spec.surrogate is not spec.primal
        and all(torch.allclose(a, b, equal_nan=True) for a, b in zip(s, p, strict=True))
    )


SURROGATE = Law(
    name="surrogate",
    family="derivative",
    statement=r"\langle v, Ds(x)\,u \rangle = \lim_{h \to 0} \frac{\langle v, s(x + hu) - s(x - hu) \rangle}{2h}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    specimens=(
        "detached_surrogate",
        "gradient_of_another_function",
    ),
)
