"""Where a case lies on a kink, as 0 is one of relu: no derivative is there, and beside it there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gradspec.law import Finding, Reason, Status
from gradspec.laws.tensor.support._call import Inputs, like
from gradspec.laws.tensor.support._differences import digits, double, jump

#: What is said of such a case.
KINK = "the one-sided derivatives differ: the case lies on a kink, where backward chooses one of several derivatives"
#: The same as a value; the message says it.
ON_A_KINK = Reason(kind="kink", words="")
#: Why a gradient is wrong along a direction in which what is equal moves alike, and right beside it.
TIES = Reason(
    kind="ties",
    words="right where no elements tie; where some do, their gradients do not add up to the derivative of the result "
    "as all of them move together",
)
#: How far beside a kink the function is judged: farther than all but the longest steps of the central differences.
DISTANCE = 0.05
#: In how many directions, and their opposites, a kink is left to see which derivatives are near.
PAIRS = 8
#: The least jump of a derivative, and how far a choice may lie outside of what is near, of the size of both.
LEAST, SLACK = 1e-10, 1e-4


def lies_on_a_kink(finding: Finding) -> bool:
    """Whether a finding is that its case lies on a kink."""
    return finding.reason is not None and finding.reason.is_as(ON_A_KINK)


def is_kink(along: Callable[[float], float], scale: float, dtype: torch.dtype) -> bool:
    """Whether a function of a step has another derivative on the right of 0 than on the left."""
    found = jump(along, dtype)
    return abs(found.value) > 10 * found.bar + max(LEAST, digits(dtype).rounding) * scale


def beside(inputs: Inputs, seed: int, distance: float = DISTANCE) -> Inputs:
    """Return the arguments with every number moved by between half a distance and the distance, either way."""
    moved = {}
    for name, x, d in zip(inputs.wrt, inputs.tensors(), like(inputs.tensors(), seed), strict=True):
        moved[name] = x + distance * d / d.abs() * (0.5 + d.abs() / 26)  # a complex one is 13 at most
    return Inputs({**inputs.values, **moved}, inputs.wrt)


def judged_beside(
    inputs: Inputs,
    seed: int,
    judge: Callable[[Inputs], Finding],
    gradient: Callable[[Inputs], tuple[Tensor | None, ...]],
) -> Finding:
    """Return what is said of a case on a kink: backward must be right beside it, and choose what is near on it.

    Args:
        inputs: the arguments, on the kink.
        seed: of the directions in which it is left.
        judge: says whether backward is right for other arguments.
        gradient: returns the gradients for other arguments.
    """
    finding = judge(beside(inputs, seed))
    if finding.status is Status.BROKEN:
        return finding
    if finding.status is not Status.HOLDS:
        said = f"{KINK}; beside it: {finding.message or finding.status}"
        return Finding(status=Status.INCONCLUSIVE, message=said, reason=ON_A_KINK)
    if not _is_near(inputs, seed, gradient):
        said = f"{KINK}; beside it the law holds, and near it no derivative was found as the one that it chooses"
        return Finding(status=Status.INCONCLUSIVE, message=said, reason=ON_A_KINK)
    said = f"{KINK}; beside it, up to {DISTANCE:g} away, the law holds"
    return Finding(status=Status.NOT_MEASURED, message=said, reason=ON_A_KINK)


def tied(x: tuple[Tensor, ...], seed: int) -> tuple[Tensor, ...] | None:
    """Return a direction that moves only what is equal to something else, and all that is equal alike; None without.

    As the maximum of equal numbers, a function may be smooth there, and which of them gets its gradient is a choice
    that the sum of their gradients does not show. What is zero stays: there most functions have a kink of their own.
    """
    if any(t.is_complex() for t in x):
        return None
    numbers = torch.cat([double(t.detach()).flatten() for t in x])
    _, group, counts = numbers.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
    moves = (counts[group] > 1) & (numbers != 0)
    if not bool(moves.any()):
        return None
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(len(counts), generator=generator, dtype=torch.float64).to(numbers.device)
    u = (steps[group] * moves).split([t.numel() for t in x])
    return tuple(one.view(t.shape).to(t.dtype) for one, t in zip(u, x, strict=True))


def _is_near(inputs: Inputs, seed: int, gradient: Callable[[Inputs], tuple[Tensor | None, ...]]) -> bool:
    """Whether each number of the gradient lies between those of the gradients around: a necessary condition.

    The generalized gradient of Clarke (Optimization and Nonsmooth Analysis, 1983, theorem 2.5.1) is the convex hull of
    the limits of gradients near a point.
    """
    chosen, eps = gradient(inputs), torch.finfo(inputs.tensors()[0].dtype).eps
    around = [gradient(other) for other in _near(inputs, seed, chosen, eps**0.5)]
    for place, x in enumerate(chosen):
        if x is None or not x.numel():
            continue
        others = torch.stack([_real(g) for found in around if (g := found[place]) is not None] or [_real(x)])
        slack = max(SLACK, eps**0.5) * float(others.abs().max())
        # rather than `<` and `>`: a NaN is not near
        if not bool(((_real(x) >= others.amin(0) - slack) & (_real(x) <= others.amax(0) + slack)).all()):
            return False
    return True


def _near(inputs: Inputs, seed: int, chosen: tuple[Tensor | None, ...], distance: float) -> Iterator[Inputs]:
    """Yield arguments near: pairs of opposites, and two in which what is chosen of many equal ones stands out."""
    for sign in (distance, -distance):
        for k in range(PAIRS):
            yield beside(inputs, seed + k, sign)
        # Of equal numbers max takes one, and a random move seldom makes that one the largest.
        outstanding = {
            name: inputs.values[name] + 4 * sign * (g.detach() != 0)
            for name, g in zip(inputs.wrt, chosen, strict=True)
            if g is not None
        }
        yield beside(Inputs({**inputs.values, **outstanding}, inputs.wrt), seed, sign)


def _real(value: Tensor) -> Tensor:
    value = double(value.detach())
    return torch.view_as_real(value) if value.is_complex() else value
