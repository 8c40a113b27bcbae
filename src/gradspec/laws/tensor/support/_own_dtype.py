"""The gradient in the dtype of the case, held to the one that the same function has in float64 at the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Reason, Status, broken
from gradspec.laws.tensor.support._bound import Bound, Limits, RoundedOperations, Units
from gradspec.laws.tensor.support._call import Inputs, differentiable, like
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._differences import digits, double

#: What a function returns, and its gradients.
Results = tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]
#: The function and its backward pass, of arguments and cotangents.
ValueAndGradients = Callable[[Inputs, tuple[Tensor, ...]], Results]
#: What is said where the values themselves are others, as those of a function that draws its noise in its own dtype.
OTHER = "the values in {0} are not those in float64"
#: How often the operations are rounded at random, and how many times as far as then a result may be off.
RUNS, TIMES = 4, 8
#: How many times as far off as in the worst of its runs a gradient is that was added up in another precision; what is
#: right is off by about a third of that, since an operation errs by less than the unit by which a run rounds it.
_FAR = 2
#: Below this, of the size of the cotangents, a gradient in float64 is what is left of terms that cancel.
NOTHING = 1e-12


def is_low(inputs: Inputs) -> bool:
    """Whether an argument that is differentiated has less than double precision."""
    return any(digits(inputs.values[name].dtype.to_real()).widest > digits(torch.float64).widest for name in inputs.wrt)


def judge_own_dtype(inputs: Inputs, compute: ValueAndGradients, seed: int) -> Finding:
    """Say whether values and gradients in the dtype of the case are those in float64, up to rounding.

    Args:
        inputs: the arguments, in their own dtype.
        compute: the function and its backward pass.
        seed: of the cotangents.
    """
    dtype = min((inputs.values[name].dtype.to_real() for name in inputs.wrt), key=lambda t: -torch.finfo(t).eps)
    wide = Inputs({name: double(value) for name, value in inputs.values.items()}, inputs.wrt)
    v = like(compute(inputs, ())[0], seed)
    y, low = compute(inputs, v)
    v = tuple(double(w) for w in v)
    y_wide, right = compute(wide, v)
    scattered = _Scattered(lambda: compute(wide, v), torch.finfo(dtype).eps, seed)
    name = str(dtype).removeprefix("torch.")
    for place, (mine, other) in enumerate(zip(y, y_wide, strict=True)):
        if differentiable(mine) and not _agree(mine, other, dtype, scattered.value(place)):
            return Finding(status=Status.INCONCLUSIVE, message=OTHER.format(name))
    size = sum(float(w.norm()) for w in v if differentiable(w))
    for place, (argument, got, expected) in enumerate(zip(inputs.wrt, low, right, strict=True)):
        if expected is None or expected.norm() <= NOTHING * size:
            continue
        got = torch.zeros_like(expected) if got is None else got
        if not bool(got.isfinite().all()) and bool(expected.isfinite().all()):
            said = f"the gradient of `{argument}` is not finite in {name}, and in float64 it is"
            return Finding(status=Status.INCONCLUSIVE, message=said)
        if not _agree(got, expected, dtype, scattered.gradient(place)):
            return _wrong(argument, got, expected, name)
    if torch.finfo(dtype).eps > torch.finfo(torch.float32).eps:
        results = dict(zip(inputs.wrt, low, strict=True))
        single, half = (Bound(lambda: compute(wide, v)[1], units, seed) for units in _carried(dtype))
        return _carried_in_low(results, single, half, dtype)
    return HOLDS


def _carried(dtype: torch.dtype) -> tuple[Units, Units]:
    """Return the units of a program in a half type that carries its sums in float32, and of one that does not."""
    low = Units.of(dtype, torch.float32)
    return replace(low, chained=torch.finfo(torch.float32).eps / 2), low


def _carried_in_low(low: Mapping[str, Tensor | None], single: Bound, half: Bound, dtype: torch.dtype) -> Finding:
    """Say whether gradients are as far off as sums that are carried in a half type are, and in float32 are not."""
    for place, (argument, got) in enumerate(low.items()):
        if got is None or (limits := single.limits(place, got.dtype)) is None or not bool(got.isfinite().all()):
            continue
        error = (double(got) - limits.right).abs()
        if float(error.norm()) <= 2 * limits.unit * float(limits.right.norm()):
            continue  # a rounding of the result and one more
        too_far = ~(error <= limits.close) & ~(error <= limits.allowed)
        is_too_far = bool(too_far.any()) or float(error.norm()) > _FAR * _largest_norm(limits)
        if not is_too_far or (other := half.limits(place, got.dtype)) is None:
            continue
        if not bool((error <= other.allowed)[too_far].all()) or float(error.norm()) > _FAR * _largest_norm(other):
            continue
        name = str(dtype).removeprefix("torch.")
        worst = int((error - limits.allowed).flatten().argmax())
        share = float(error.norm() / limits.right.norm())
        closer = float(error.norm() / limits.expected.norm())
        return broken(
            f"the gradient of `{argument}` is off by {share:.1%} in {name}: it is added up in {name}, and added up in "
            f"float32 it would be {closer:.0f} times closer",
            argument=f"gradient of `{argument}`, {describe(got)}",
            got=f"{got.flatten()[worst].item():.6g}",
            expected=f"{limits.right.flatten()[worst].item():.6g}",
            reason=Reason(kind="accumulated", words=f"a sum that is carried in {name}", evidence={"closer": closer}),
        )
    return HOLDS


def _largest_norm(limits: Limits) -> float:
    """Return how far, in norm, a result is off in the worst of the runs that are rounded at random, and stored.

    No element shows that a sum lost its digits where each term is rounded as much as that; all of them together do.
    """
    runs = limits.scattered().abs().flatten(1).norm(dim=1)
    return math.hypot(float(runs.max()), limits.unit * float(limits.right.norm()))


class _Scattered:
    """Results whose operations are rounded at random, computed where they are asked for."""

    def __init__(self, compute: Callable[[], Results], unit: float, seed: int) -> None:
        """Take what computes them, the unit of rounding and the seed of the errors."""
        self.compute, self.unit, self.seed = compute, unit, seed
        self.runs: list[Results] = []

    def _all(self) -> list[Results]:
        for k in range(len(self.runs), RUNS):
            with RoundedOperations(Units(self.unit, 0.0), self.seed + k):
                self.runs.append(self.compute())
        return self.runs

    def value(self, place: int) -> Iterator[Tensor | None]:
        """Yield an output of each run."""
        yield from (y[place] for y, _ in self._all())

    def gradient(self, place: int) -> Iterator[Tensor | None]:
        """Yield a gradient of each run."""
        yield from (found[place] for _, found in self._all())


def _agree(got: Tensor, expected: Tensor, dtype: torch.dtype, scattered: Iterator[Tensor | None]) -> bool:
    #   |g_low - g_64| <= (16 u, a thousandth in float32) |g_64| + 8 max_k |g_64 rounded at random by u - g_64|
    # in the Euclidean norm: a number beside a jump, which rounding takes to its other side, does not weigh as all do.
    error, allowed = float((double(got) - expected).norm()), digits(dtype).rounding * float(expected.norm())
    if error <= allowed:
        return True
    off = (float((other - expected).norm()) for other in scattered if other is not None)
    return error <= allowed + TIMES * max(off, default=0.0)


def _wrong(argument: str, got: Tensor, expected: Tensor, name: str) -> Finding:
    worst = int((double(got) - expected).abs().flatten().argmax())
    return broken(
        f"the gradient in {name} is not the one that backward returns in float64",
        argument=f"gradient of `{argument}`, {describe(got)}",
        got=f"{got.flatten()[worst].item():.6g}",
        expected=f"{expected.flatten()[worst].item():.6g}",
        likely=f"a wrong backward in {name}: in float64 it is right",
    )
