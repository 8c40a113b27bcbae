"""Results in the dtype of the case, held to those that the same function has in float64 at the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Rank, Reason, Status, broken
from gradspec.laws.tensor.support._bound import RoundedOperations, Units
from gradspec.laws.tensor.support._call import Inputs, differentiable, like
from gradspec.laws.tensor.support._carried import CarriedInSingle, SavedInSingle
from gradspec.laws.tensor.support._compare import describe
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._differences import digits, double, in_double, is_half
from gradspec.laws.tensor.support._farther import LITTLE, roundings
from gradspec.laws.tensor.support._farther import TIMES as TIMES_CLOSER
from gradspec.laws.tensor.support._rounded_line import rounded_line, share
from gradspec.laws.tensor.support._wide_memory import HALF

#: What a function returns, and its gradients.
Results = tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]
#: The function and its backward pass, of arguments and cotangents.
ValueAndGradients = Callable[[Inputs, tuple[Tensor, ...]], Results]
#: What keeps something in float32, and what is said where that brings a result closer.
_Experiment = tuple[CarriedInSingle | SavedInSingle, str, str]
#: What is said where the values themselves are others, as those of a function that draws its noise in its own dtype.
OTHER = "the values in {0} are not those in float64"
#: How often the operations are rounded at random, and how many times as far as then a result may be off.
RUNS, TIMES = 4, 8
#: From how many roundings on a gradient in a half type is looked into, and how much closer float32 has to bring it.
ROUNDINGS, CLOSER = 2.0, 2.0
#: What is said of sums that are carried in a half type, and of what is saved in it: in a sentence, and in short.
_SUMMED = ("it is added up in {name} in {line}", "a sum that is carried in {name}")
_SAVED = ("{line} saves in {name} what forward has in float32", "what forward has in float32 is saved in {name}")
#: How far off a value may be that is kept in the dtype of a model on purpose, as the residuals of many layers.
_LITTLE = 0.05
#: Below this, of the size of the cotangents, a gradient in float64 is what is left of terms that cancel.
NOTHING = 1e-12


def judge_own_dtype(inputs: Inputs, compute: ValueAndGradients, seed: int) -> Finding:
    """Say whether values and gradients in the dtype of the case are those in float64, up to rounding.

    Args:
        inputs: the arguments, in their own dtype.
        compute: the function and its backward pass.
        seed: of the cotangents.
    """
    dtype = min((inputs.values[name].dtype.to_real() for name in inputs.wrt), key=lambda t: -torch.finfo(t).eps)
    wide = in_double(inputs)
    v = like(compute(inputs, ())[0], seed)
    y, low = compute(inputs, v)
    narrow, v = v, tuple(double(w) for w in v)
    y_wide, right = compute(wide, v)
    scattered = _Scattered(lambda: compute(wide, v), torch.finfo(dtype).eps, seed)
    name = str(dtype).removeprefix("torch.")
    values = [f"output {place}" for place in range(len(y))] if len(y) > 1 else ["the output"]
    computed = [one if differentiable(one) else None for one in y]

    def in_a_line(place: int) -> Finding:
        return _lost_in_a_line(values[place], computed[place], y_wide[place], lambda: compute(inputs, ())[0][place])

    for place, (mine, other) in enumerate(zip(y, y_wide, strict=True)):
        if differentiable(mine) and not _agree(mine, other, dtype, scattered.value(place)):
            if (lost := in_a_line(place)).status is Status.BROKEN:
                return lost
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
    if not is_half(inputs):
        return HOLDS
    names = [f"the gradient of `{name}`" for name in inputs.wrt]
    experiments: list[_Experiment] = [(CarriedInSingle(in_backward=True), *_SUMMED), (SavedInSingle(y), *_SAVED)]
    lost = _lost_on_the_way(names, low, right, lambda: compute(inputs, narrow)[1], experiments)
    if lost.status is Status.BROKEN:
        return lost
    # A stream of residuals is a long sum too, and is kept in the dtype of a model on purpose: up to so much.
    summed: list[_Experiment] = [(CarriedInSingle(), *_SUMMED)]
    lost = _lost_on_the_way(values, computed, y_wide, lambda: compute(inputs, narrow)[0], summed)
    is_little = lost.reason is not None and lost.reason.evidence["off"] < _LITTLE
    if lost.status is Status.BROKEN:
        return replace(lost, rank=Rank.WASTE) if is_little else lost
    for place in range(len(y)):
        if (lost := in_a_line(place)).status is Status.BROKEN:
            return lost
    for place, (name, got, expected) in enumerate(zip(inputs.wrt, low, right, strict=True)):
        name = f"the gradient of `{name}`"
        lost = _lost_in_a_line(name, got, expected, lambda place=place: compute(inputs, narrow)[1][place])  # type: ignore[misc]
        if lost.status is Status.BROKEN:
            return lost
    return HOLDS


def _lost_in_a_line(name: str, got: Tensor | None, expected: Tensor | None, again: Callable[[], Any]) -> Finding:
    """Say whether a result in a half type is far off for what one line computes in it: whoever wrote it may mean so."""
    if got is None or expected is None or got.dtype not in HALF or not _error(got, expected) > LITTLE:
        return HOLDS
    found = quietly(lambda: rounded_line(again, expected, share(got, expected), TIMES_CLOSER))
    if found is None:  # or it does not run in float32
        return HOLDS
    kind, worst = str(got.dtype).removeprefix("torch."), int((double(got) - expected).abs().flatten().argmax())
    return broken(
        f"{name} is off by {share(got, expected):.1%} in {kind}, and in float32 by {found.left:.1g}",
        argument=f"{name.removeprefix('the ')}, {describe(got)}",
        got=f"{got.flatten()[worst].item():.6g}",
        expected=f"{expected.flatten()[worst].item():.6g}",
        rank=Rank.WASTE,
        reason=found.reason(kind, name),
    )


def _lost_on_the_way(
    names: Sequence[str],
    low: Sequence[Tensor | None],
    right: Sequence[Tensor | None],
    compute: Callable[[], tuple[Tensor | None, ...]],
    experiments: Sequence[_Experiment],
) -> Finding:
    """Say whether results in a half type are far off, and would not be with sums or saved tensors in float32."""
    errors = [_error(got, expected) for got, expected in zip(low, right, strict=True)]
    far = [place for place, off in enumerate(errors) if off > ROUNDINGS]
    for experiment, said, words in experiments if far else ():
        try:
            with experiment:
                found = compute()
        except Exception:  # what is wider than it expects does not run
            continue
        for place in far if (line := experiment.line) else ():
            got, expected = low[place], right[place]
            closer = errors[place] / max(_error(found[place], expected), 0.1)
            if closer < CLOSER or got is None or expected is None:
                continue
            # A result may be wider than the terms that were added up, or saved.
            name = str(experiment.dtype).removeprefix("torch.")
            worst = int((double(got) - expected).abs().flatten().argmax())
            off = share(got, expected)
            return broken(
                f"{names[place]} is off by {off:.1%} in {str(got.dtype).removeprefix('torch.')}: "
                f"{said.format(line=line, name=name)}, "
                f"and in float32 it would be {closer:.0f} times closer",
                argument=f"{names[place].removeprefix('the ')}, {describe(got)}",
                got=f"{got.flatten()[worst].item():.6g}",
                expected=f"{expected.flatten()[worst].item():.6g}",
                reason=Reason(
                    kind="accumulated",
                    words=f"{words.format(name=name)} ({line})",
                    evidence={"closer": closer, "line": line, "off": off},
                ),
            )
    return HOLDS


def _error(got: Tensor | None, expected: Tensor | None) -> float:
    """Return how far a gradient is off, in units of rounding of its dtype; 0 where that says nothing."""
    if got is None or expected is None or not bool(got.isfinite().all()) or not float(expected.norm()):
        return 0.0
    return roundings(got, expected)


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
