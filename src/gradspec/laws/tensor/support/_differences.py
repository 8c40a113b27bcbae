r"""Numerical derivatives with an error bar: central differences, extrapolated after Richardson.

A central difference of step :math:`h` is off by :math:`c_2 h^2 + c_4 h^4 + \dots`. Halving the step and combining two
of them removes one term after the other; the change from one column of combinations to the next is the error bar
(Ridders, Accurate computation of F'(x) and F'(x) F''(x), 1982).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable

#: How narrow the bar of a shorter step is that finds another derivative, in parts of it.
_CLOSE = 0.1
#: How many units of rounding the sum of independent errors is off at most, in root mean squares.
_ERRORS = 1.5
#: How often a start step is halved.
HALVINGS = 5


@dataclass(frozen=True, kw_only=True)
class Digits:
    """What central differences find of a derivative in one dtype, of the size of what is differentiated."""

    #: Start steps; the numbers of a case are thousandths.
    steps: tuple[float, ...]
    #: The widest error bar by which a derivative is judged.
    widest: float
    #: What rounding leaves of it.
    rounding: float
    #: The start step that is tried too where these disagree: a kink lies within the larger ones.
    closer: float | None = None


DOUBLE = Digits(steps=(0.1, 0.01, 0.001), widest=1e-6, rounding=1e-13, closer=1e-4)
SINGLE = Digits(steps=(0.1, 0.01, 0.001), widest=1e-2, rounding=1e-3)


def digits(dtype: torch.dtype) -> Digits:
    """Return what central differences find in a dtype."""
    if dtype == torch.float64:
        return DOUBLE
    if dtype == torch.float32:
        return SINGLE
    # A number near 1 does not move at all by 0.001 in half precision; 16 units of rounding are what a few operations on
    # the way to a derivative, and the differences, leave of it: an eighth in bfloat16, which shows what is lost.
    left = 16 * torch.finfo(dtype).eps
    return Digits(steps=(1.0, 0.5, 0.25), widest=left, rounding=left)


@dataclass(frozen=True)
class Slope:
    """A numerical derivative."""

    value: float
    #: How far it may be off.
    bar: float
    #: What shorter steps find, if some are.
    closer: tuple[Slope, ...] = ()

    def __str__(self) -> str:
        return f"{self.value:.12g} ± {self.bar:.1e}"

    def is_clear(self, scale: float, dtype: torch.dtype = torch.float64) -> bool:
        """Whether the error bar is narrow beside the size of what was differentiated; a NaN is not."""
        return math.isfinite(self.bar) and self.bar <= digits(dtype).widest * scale + 1e-300

    def agrees(self, exact: float, scale: float, dtype: torch.dtype = torch.float64) -> bool:
        """Whether a derivative is this one, as far as the error bar and rounding tell."""
        return abs(exact - self.value) <= 10 * self.bar + digits(dtype).rounding * scale

    def is_refuted_for(self, exact: float) -> bool:
        """Whether shorter steps find a derivative that is given, and not this one: a function turns within a step."""
        return any(
            abs(one.value - exact) <= 2 * one.bar <= _CLOSE * abs(exact) and abs(one.value - self.value) > 10 * one.bar
            for one in self.closer
        )

    @property
    def is_contradicted(self) -> bool:
        """Whether a shorter step finds another derivative than this one, as far as both error bars tell."""
        return any(abs(one.value - self.value) > 10 * max(self.bar, one.bar) for one in self.closer)


def slope(along: Callable[[float], float], dtype: torch.dtype = torch.float64) -> Slope:
    """Return the derivative of a function of a step at 0, computed in a dtype: the best of all start steps."""
    # D(h) = (f(h) - f(-h)) / 2h = f' + c_2 h^2 + c_4 h^4 + ...: odd powers cancel.
    return _limit(lambda h: (along(h) - along(-h)) / (2 * h), digits(dtype), ratio=4)


def jump(along: Callable[[float], float], dtype: torch.dtype = torch.float64) -> Slope:
    """Return how far the derivatives of a function of a step from the right and from the left of 0 lie apart."""
    # (f(h) - f(0)) / h - (f(0) - f(-h)) / h = f'(0+) - f'(0-) + c_1 h + c_2 h^2 + ...: beside a kink f may curve on
    # the one side as it does not on the other, and no power cancels.
    at_zero = along(0.0)
    return _limit(lambda h: ((along(h) - at_zero) - (at_zero - along(-h))) / h, digits(dtype), ratio=2)


def _limit(quotient: Callable[[float], float], of: Digits, *, ratio: int) -> Slope:
    """Return the limit at 0 of a quotient whose errors fall by powers of a ratio where the step is halved."""
    found = _best(estimates := [_estimate(quotient, start, ratio) for start in of.steps])
    if of.closer is not None and not found.bar <= of.widest * abs(found.value):
        found = _best([*estimates, _estimate(quotient, of.closer, ratio)])
    return found


def _best(estimates: list[tuple[float, float]]) -> Slope:
    (bar_1, first), (bar_2, second) = sorted(estimates)[:2]
    shorter = estimates[estimates.index((bar_1, first)) + 1 :]
    closer = tuple(Slope(value=value, bar=bar) for bar, value in shorter)
    return Slope(value=first, bar=max(bar_1, bar_2, abs(first - second)), closer=closer)


def _estimate(quotient: Callable[[float], float], start: float, ratio: int) -> tuple[float, float]:
    """Return how far the limit may be off that is extrapolated from one start step, and the limit."""
    column = [quotient(start / 2**k) for k in range(HALVINGS)]
    best, bar = column[0], float("inf")
    # With the ratio r, the lowest error left of D(h) becomes 1/r^k of itself at half the step, and
    # (r^k D(h/2) - D(h)) / (r^k - 1) has it no more.
    for order in range(1, HALVINGS):
        power = ratio**order
        after = [(power * b - a) / (power - 1) for a, b in pairwise(column)]
        for a, b, c in zip(column, column[1:], after, strict=False):
            if (error := max(abs(c - a), abs(c - b))) < bar:
                best, bar = c, error
        column = after
    return bar, best


def moves(x: tuple[Tensor, ...], u: tuple[Tensor, ...]) -> bool:
    """Whether the shortest start step of a half type moves arguments in its direction, and not to what is near."""
    for a, b in zip(x, u, strict=True):
        step = b * digits(a.dtype.to_real()).steps[-1]
        if float(((a.detach() + step) - a.detach() - step).norm()) > float(step.norm()) / 2:
            return False
    return True


def inner(a: Tensor, b: Tensor) -> float:
    """Return the real inner product of two tensors, summed in double precision."""
    a, b = (double(t.detach()) for t in (a, b))
    return float((a.conj() * b).real.sum())


def double(value: Tensor) -> Tensor:
    """Return a tensor in double precision, integers as they are."""
    if not differentiable(value):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def in_double(inputs: Inputs) -> Inputs:
    """Return arguments in double precision."""
    return Inputs({name: double(value) for name, value in inputs.values.items()}, inputs.wrt)


def overflows(inputs: Inputs, rounded: Inputs) -> bool:
    """Whether a number of some arguments is finite, and is so no more in another dtype."""
    pairs = zip(inputs.tensors(), rounded.tensors(), strict=True)
    return any(bool((one.isfinite() & ~other.isfinite()).any()) for one, other in pairs)


def is_low(inputs: Inputs) -> bool:
    """Whether an argument that is differentiated has less than double precision."""
    return _is_below(inputs, torch.float64)


def is_half(inputs: Inputs) -> bool:
    """Whether an argument that is differentiated has less than single precision."""
    return _is_below(inputs, torch.float32)


def _is_below(inputs: Inputs, dtype: torch.dtype) -> bool:
    return any(digits(inputs.values[name].dtype.to_real()).widest > digits(dtype).widest for name in inputs.wrt)


def lies_within_a_step(inputs: Inputs) -> bool:
    """Whether an argument of a low precision lies nearer to zero than a step is long, and none of it is zero."""
    low = [t for t in inputs.tensors() if t.numel() and t.dtype.to_real() != torch.float64 and bool(t.all())]
    return any(float(t.abs().max()) < digits(t.dtype.to_real()).steps[0] / 10 for t in low)


def is_single(value: Tensor) -> bool:
    """Return whether each number of a tensor is one of float32, and one is not zero."""
    return not differentiable(value) or (torch.equal(double(value), double(single(value))) and bool(value.any()))


def left_by_rounding(case: Inputs, wrt: Sequence[str], grads: Sequence[Tensor | None], u: Sequence[Tensor]) -> float:
    """Return how far a derivative along a direction may be off whose gradients are rounded to the dtype of a case.

    A function that returns them in a half type does so whatever it is given: in float64 their rounding shows.
    """
    if not is_half(case):
        return 0.0
    dtypes = [case.values[name].dtype for name in wrt]
    given = [(g, b, dtype) for g, b, dtype in zip(grads, u, dtypes, strict=True) if g is not None]
    if not all(torch.equal(double(g), double(g.to(dtype))) for g, _, dtype in given):
        return 0.0
    #   |sum_i (g_i - round(g_i)) u_i|: independent errors, none larger than half a unit of rounding of g_i
    square = sum(float((double(g) * b).abs().square().sum()) for g, b, _ in given)
    return _ERRORS * max(torch.finfo(dtype.to_real()).eps for dtype in dtypes) * math.sqrt(square)


def single(value: Tensor) -> Tensor:
    """Return a tensor in single precision."""
    return value.to(torch.complex64 if value.is_complex() else torch.float32)
