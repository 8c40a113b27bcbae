r"""Numerical derivatives with an error bar: central differences, extrapolated after Richardson.

A central difference of step :math:`h` is off by :math:`c_2 h^2 + c_4 h^4 + \dots`. Halving the step and combining two
of them removes one term after the other; the change from one column of combinations to the next is the error bar
(Ridders, Accurate computation of F'(x) and F'(x) F''(x), 1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import differentiable

#: Start steps of the central differences, and how often each is halved; the numbers of a case are thousandths.
STEPS = (0.1, 0.01, 0.001)
HALVINGS = 5
#: What rounding leaves of a numerical derivative in float64, of the size of what is differentiated.
ROUNDING = 1e-13
#: The widest error bar by which a derivative in float64 is judged, of the size of what is differentiated.
WIDEST = 1e-6


@dataclass(frozen=True)
class Slope:
    """A numerical derivative."""

    value: float
    #: How far it may be off.
    bar: float

    def __str__(self) -> str:
        return f"{self.value:.12g} ± {self.bar:.1e}"

    def is_clear(self, scale: float, dtype: torch.dtype = torch.float64) -> bool:
        """Whether the error bar is narrow beside the size of what was differentiated; a NaN is not."""
        return self.bar <= (WIDEST if dtype == torch.float64 else 1e-2) * scale + 1e-300

    def agrees(self, exact: float, scale: float, dtype: torch.dtype = torch.float64) -> bool:
        """Whether a derivative is this one, as far as the error bar and rounding tell."""
        rounding = ROUNDING if dtype == torch.float64 else 1e-3
        return abs(exact - self.value) <= 10 * self.bar + rounding * scale


def slope(along: Callable[[float], float]) -> Slope:
    """Return the derivative of a function of a step at 0: the best of all start steps."""
    estimates: list[tuple[float, float]] = []
    for start in STEPS:
        steps = [start / 2**k for k in range(HALVINGS)]
        column = [(along(h) - along(-h)) / (2 * h) for h in steps]
        best, bar = column[0], float("inf")
        # D(h) = (f(h) - f(-h)) / 2h = f' + c_2 h^2 + c_4 h^4 + ...: odd powers cancel. Where the lowest power left is
        # h^{2k}, (4^k D(h/2) - D(h)) / (4^k - 1) = f' + O(h^{2k+2}): it is 4^-k as large at half the step.
        for order in range(1, HALVINGS):
            power = 4**order
            after = [(power * b - a) / (power - 1) for a, b in pairwise(column)]
            for a, b, c in zip(column, column[1:], after, strict=False):
                if (error := max(abs(c - a), abs(c - b))) < bar:
                    best, bar = c, error
            column = after
        estimates.append((bar, best))
    (bar_1, first), (bar_2, second) = sorted(estimates)[:2]
    return Slope(first, max(bar_1, bar_2, abs(first - second)))


def inner(a: Tensor, b: Tensor) -> float:
    """Return the real inner product of two tensors, summed in double precision."""
    a, b = (double(t.detach()) for t in (a, b))
    return float((a.conj() * b).real.sum())


def double(value: Tensor) -> Tensor:
    """Return a tensor in double precision, integers as they are."""
    if not differentiable(value):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)
