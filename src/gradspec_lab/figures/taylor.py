"""How fast the error of a first-order Taylor expansion falls, with a function's own gradient as the derivative.

A loss stands behind the function F: half the sum of squares. With g the gradient of the loss that autograd returns,

    r(h) = | loss(F(x + h u)) - loss(F(x)) - h <g, u> |

falls as h squared if g is the derivative of what F computes, and as h if it is not. The surrogate S, in the place of
F behind the same loss, is F(x) + S(x + h u) - S(x): it has the value of F at h = 0 and the derivative of S.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradspec import FunctionSpec
from gradspec_lab.figures.function_curves import digits, figure

#: Steps. Below the last one, the remainder of a right gradient nears what float64 rounds.
STEPS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: The slope is that of the smallest steps: at large ones, terms of higher order mix in.
FITTED = 3
#: Where the gradient is that of forward, another one is shown to be told apart: this many times the right one.
WRONG = 1.1
#: The gradient of these is that of forward.
HONEST = ("linear_average_op", "instance_discrimination_loss")


def arguments(name: str) -> tuple[Any, ...]:
    """Return the arguments of a call by the name of the spec, all drawn from one seed."""
    source = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=source, dtype=torch.float64)

    y = torch.tensor([2, 0, 4])
    calls: Mapping[str, Callable[[], tuple[Any, ...]]] = {
        "grad_factor": lambda: (normal(3, 4), 0.1),
        "grad_multiply": lambda: (normal(3, 4), 0.1),
        "shake_shake": lambda: (normal(3, 4), normal(3, 4), 0.75, 0.25),
        "linear_average_op": lambda: (normal(3, 4), y, normal(5, 4), torch.tensor([0.5, 0.5])),
        "instance_discrimination_loss": lambda: (normal(3, 4), y, normal(5, 4), 0.5),
    }
    return calls[name]()


def loss(y: Tensor) -> Tensor:
    """Return half the sum of squares."""
    return (y**2).sum() / 2


def copied(args: Sequence[Any]) -> list[Any]:
    """Return arguments that a call may move."""
    return [value.clone() if isinstance(value, Tensor) else value for value in args]


def remainders(spec: FunctionSpec, args: tuple[Any, ...]) -> dict[str, list[float]]:
    """Return the remainder at each step: of the function, and of its surrogate or with a gradient that is wrong."""
    places = [spec.parameters.index(name) for name in spec.wrt]
    source = torch.Generator().manual_seed(1)
    u = {place: torch.randn(args[place].shape, generator=source, dtype=torch.float64) for place in places}

    leaves = copied(args)
    for place in places:
        leaves[place].requires_grad_()
    y = spec.function(*leaves)
    gradients = torch.autograd.grad(loss(y), [leaves[place] for place in places])
    y, at_0 = y.detach(), loss(y).item()
    slope = sum((g * u[place]).sum().item() for g, place in zip(gradients, places, strict=True))

    def at(h: float) -> list[Any]:
        moved = copied(args)
        for place in places:
            moved[place] += h * u[place]
        return moved

    def remainder(of: Callable[..., Tensor], times: float = 1.0) -> list[float]:
        return [abs(loss(of(*at(h))).item() - at_0 - h * times * slope) for h in STEPS]

    found = {"forward": remainder(spec.function)}
    if spec.name in HONEST:
        return found | {"with a gradient a tenth too large": remainder(spec.function, WRONG)}
    s = spec.surrogate(*copied(args))
    return found | {"surrogate": remainder(lambda *moved: y + spec.surrogate(*moved) - s)}


def fitted(values: Sequence[float]) -> float:
    """Return the slope of the remainder over the step, both logarithmic, by least squares over the smallest steps."""
    xs = [math.log10(h) for h in STEPS[-FITTED:]]
    ys = [math.log10(value) for value in values[-FITTED:]]
    x, y = sum(xs) / FITTED, sum(ys) / FITTED
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def taylor(spec: FunctionSpec) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the figure, its lines named by their slope, and the slopes."""
    found = remainders(spec, arguments(spec.name))
    slopes = {label: digits(fitted(values)) for label, values in found.items()}
    lines = {f"{label}: slope {slopes[label]:.2f}": values for label, values in found.items()}
    x = {"label": "step h", "scale": "log", "values": STEPS}
    y = {"label": "remainder", "scale": "log", "format": ".2g"}
    return figure("The Taylor remainder", x, y, lines), slopes
