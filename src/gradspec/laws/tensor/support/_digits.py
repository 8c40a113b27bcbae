"""How many digits a computation loses by its own rounding, as single precision shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable
from gradspec.laws.tensor.support._compare import largest
from gradspec.laws.tensor.support._differences import double

#: How many calls near a case say how far off rounding takes the reference.
PROBES = 8


def of_low_precision(
    compute: Callable[[Inputs, int], Mapping[str, Tensor | None]], inputs: Inputs, expected: Tensor
) -> float:
    """Return how far off a result may be: 16 times as far as the reference is by its own rounding.

    Where terms cancel, the reference has fewer digits than the comparison asks for. How many is seen in float32, where
    its error, in units of rounding of the largest element, is that of float64; of several calls and all results, since
    a single one may be right by luck. Each call has cotangents of its own: where a softmax is saturated, a derivative
    does not depend on the arguments at all, and all calls near them would be right by the same luck. The function loses
    its own digits too.

    Args:
        compute: returns the results of the reference by name, None where it has none, for other arguments too, and for
            what is added to the seed of its cotangents.
        inputs: the arguments of the case.
        expected: the result that is asked about.
    """
    # A result d^ computed by a backward stable formula obeys |d^ - d| <= kappa u |d|, with u the unit of rounding
    # and kappa the same for each precision (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 1.6):
    #   lost = max |d_32 - d_64| / (max |d_64| u_32), an estimate of kappa;   allowed = 16 u_64 lost max |d|.
    lost = 0.0
    for k in range(PROBES):
        near = inputs.scaled([1 + 2 * j * 2.0**-23 for j in (k, -k)])
        low = Inputs({n: _low(v) for n, v in near.values.items()}, inputs.wrt)
        same = Inputs({n: double(v) if differentiable(v) else v for n, v in low.values.items()}, inputs.wrt)
        rough, exact = compute(low, k), compute(same, k)
        for name, right in exact.items():
            if right is None or (other := rough[name]) is None or other.dtype == right.dtype or not largest(right):
                continue
            lost = max(lost, largest(other - right) / largest(right) / torch.finfo(other.dtype).eps)
    return 16 * torch.finfo(expected.dtype).eps * lost * largest(expected)


def _low(value: Any) -> Any:
    """Return a number in single precision, and anything else as it is."""
    if not differentiable(value) or value.dtype not in (torch.float64, torch.complex128):
        return value
    return value.to(torch.complex64 if value.is_complex() else torch.float32)
