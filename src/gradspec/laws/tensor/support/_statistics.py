"""Arguments that are statistics of another one: a gradient may be that of both together, as of a normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from gradspec._one_line import listed
from gradspec.law import HOLDS, Finding, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, differentiable

#: A statistic of a tensor over some of its dimensions.
Statistic = Callable[[Tensor], Tensor]
#: How far a statistic may be off that was computed in single precision.
_RTOL = 1e-4
#: What is added to a variance at most.
_EPS = 0.1

#: Of which a small number is added, and the root of the inverse taken: as a normalisation does.
_SQUARES: Mapping[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "variance": lambda x, dims: x.var(dims, correction=0),
    "unbiased variance": lambda x, dims: x.var(dims, correction=1),
    "mean square": lambda x, dims: x.square().mean(dims),
}
_STATISTICS: Mapping[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "mean": lambda x, dims: x.mean(dims),
    "sum": lambda x, dims: x.sum(dims),
    **_SQUARES,
    "standard deviation": lambda x, dims: x.std(dims, correction=0),
    "unbiased standard deviation": lambda x, dims: x.std(dims, correction=1),
    "norm": lambda x, dims: torch.linalg.vector_norm(x, dim=dims),
    "largest element": lambda x, dims: x.amax(dims),
    "largest size": lambda x, dims: x.abs().amax(dims),
    "logarithm of the sum of the exponentials": lambda x, dims: x.logsumexp(dims),
}


def of_statistics(trial: Trial, inputs: Inputs, judged: Callable[[Trial, Inputs], Finding]) -> Finding | None:
    """Return the question whether a gradient is meant to go through arguments that are statistics of its own.

    It is asked if the gradient is the derivative where these move with the argument.

    Args:
        trial: the call, in which a gradient is not the derivative of forward.
        inputs: its arguments.
        judged: holds the gradients of some arguments to the derivative of forward.
    """
    names = list(inputs.values)
    for name in inputs.wrt:
        x = inputs.values[name]
        if not differentiable(x) or x.is_complex() or not 0 < x.ndim <= 4:
            continue
        found = {
            other: one
            for other, m in inputs.values.items()
            if other not in inputs.wrt and differentiable(m) and (one := _statistic(m, x)) is not None
        }
        if not found or judged(_together(trial, names, name, found), inputs) is not HOLDS:
            continue
        said = " and ".join(f"`{other}` is the {words} of `{name}`" for other, (words, _) in found.items())
        message = (
            f"Is it meant that the gradient of `{name}` goes through {listed(list(found))}? Here {said}, "
            f"and backward applies the derivative of all together, not that of forward alone."
        )
        likely = "If so, audit what computes them, a module or a function; if not, backward is wrong."
        return Finding(status=Status.QUESTION, message=message, likely=likely)
    return None


def _together(trial: Trial, names: list[str], name: str, found: Mapping[str, tuple[str, Statistic]]) -> Trial:
    """Return the call of the function of which these arguments move with the one that they are statistics of."""

    @wraps(trial.spec.surrogate)
    def together(*args: Any) -> Any:
        given = dict(zip(names, args, strict=False))
        x = given[name]
        moved = {other: statistic(x).to(given[other].dtype) for other, (_, statistic) in found.items()}
        return trial.spec.surrogate(*(moved.get(other, value) for other, value in given.items()))

    return replace(trial, spec=replace(trial.spec, surrogate=together))


def _statistic(m: Tensor, x: Tensor) -> tuple[str, Statistic] | None:
    """Return which statistic of a tensor another one is, in words, and how to compute it."""
    return next(_statistics(m.detach(), x.detach()), None)


def _statistics(m: Tensor, x: Tensor) -> Iterator[tuple[str, Statistic]]:
    if not m.numel() or m.numel() == x.numel():
        return
    for count in range(1, x.ndim + 1):
        for dims in combinations(range(x.ndim), count):
            if x.numel() != m.numel() * math.prod(x.shape[d] for d in dims):
                continue
            over = f" over dimension{'s' if count > 1 else ''} {' and '.join(map(str, dims))}" if count < x.ndim else ""
            for words, of in _STATISTICS.items():
                if _is_near(of(x, dims).reshape(m.shape), m):
                    yield f"{words}{over}", lambda x, of=of, dims=dims: of(x, dims).reshape(m.shape)  # type: ignore[misc]
            for words, of in _SQUARES.items():
                eps = float((m.double() ** -2 - of(x, dims).double().reshape(m.shape)).median())
                made = (of(x, dims).reshape(m.shape) + eps).rsqrt()
                if 0 <= eps < _EPS and m.numel() > 1 and _is_near(made, m):

                    def inverse(x: Tensor, of: Any = of, dims: Any = dims, eps: float = eps) -> Any:
                        return (of(x, dims).reshape(m.shape) + eps).rsqrt()

                    yield f"inverse root of the {words}{over}", inverse


def _is_near(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a.double(), b.double(), rtol=_RTOL, atol=_RTOL * float(b.abs().max()))
