r"""The noise has its declared law, and is independent from sample to sample, call to call, forward to backward.

.. math::

    \sup_t |\hat{F}_n(t) - F(t)| \le \sqrt{\frac{\ln(2 / \delta)}{2 n}}

with probability :math:`1 - \delta` (Dvoretzky, Kiefer, Wolfowitz; Massart's constant). Independence is judged on the
16 cells of a grid, each by Hoeffding's inequality, which is the same bound. Both are exact for every n; the levels add
up to 1e-9 a verdict.

Why it matters: the variance of the noise is what regularises, and one draw for the whole batch has far less effect.

What breaks it: one draw for the whole batch, backward using the noise of forward, a call that seeds itself.

Remedy: draw a tensor of one number a sample, once for each noise, and do not seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Status, Trial, broken, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._generators import given_noise, has_batch, seeded, without_noise
from gradspec.spec import Noise

SAMPLES = 20_000
LEVEL = 1e-9
CELLS = 4


def _check(trial: Trial) -> Finding:
    noise, inputs = given_noise(trial), without_noise(trial)
    if noise is None:
        return not_applicable("no noise is among the arguments")
    if not has_batch(inputs):
        return not_applicable("no floating-point input with a batch in this case")
    with seeded(trial.seed):
        calls = [_drawn(noise, inputs) for _ in range(2)]
    rng = torch.Generator().manual_seed(trial.seed + 1)  # of the same seed it would draw what the function drew
    for name, rows in calls[0].items():
        if not bool((rows == rows[:, :1]).all()):
            likely = "a number is drawn an element" if _is_drawn_an_element(noise, rows, rng) else ""
            return broken(f"`{name}` differs within a sample", likely=likely)
    first, second = ({name: _uniform(noise.cdf, rows[:, 0], rng) for name, rows in call.items()} for call in calls)
    pairs = {f"`{a}` and `{b}` of one sample": (first[a], first[b]) for a, b in combinations(noise.names, 2)}
    for name in noise.names:
        pairs[f"`{name}` of neighbouring samples"] = (first[name][0::2], first[name][1::2])
        pairs[f"`{name}` of one call and of the next"] = (first[name], second[name])
    # A union bound over all comparisons of the verdict: each marginal, and each cell of each pair.
    level = LEVEL / (len(noise.names) + CELLS**2 * len(pairs))
    for name in noise.names:
        rounding = torch.finfo(calls[0][name].dtype).eps
        if (finding := _has_law(name, first[name], noise.law, level, rounding)) is not HOLDS:
            return replace(finding, likely=_shared(*(call[name][:, 0] for call in calls)))
    for what, (a, b) in pairs.items():
        if (finding := _independent(what, a, b, level)) is not HOLDS:
            return finding
    return Finding(status=Status.HOLDS, details={"samples": SAMPLES, "level": LEVEL, "bound": _bound(SAMPLES, level)})


def _drawn(noise: Noise, inputs: Inputs) -> dict[str, Tensor]:
    """Return the noise of one call of the form that draws, by name: a row a sample."""
    args = dict(zip(inputs.values, noise.probe(SAMPLES, *inputs.args()), strict=True))
    leaves = [args[name].requires_grad_() for name in inputs.wrt]
    y = noise.drawing(*args.values())
    gradients = torch.autograd.grad(y.sum(), leaves)
    found = noise.recover(y.detach(), dict(zip(inputs.wrt, gradients, strict=True)))
    return {name: found[name].reshape(SAMPLES, -1) for name in noise.names}


def _uniform(cdf: Callable[[Tensor], Tensor], x: Tensor, rng: torch.Generator) -> Tensor:
    """Return numbers that are uniform on [0, 1] where x has the law of the cdf, jumps and all.

    At a jump, as of a Bernoulli mask, the number is drawn between both ends of it: the distributional transform
    (Rueschendorf 2009, On the distributional transform, Sklar's theorem, and the empirical copula process, section 2).
    A value that is rounded counts as being on both sides of the jump.
    """
    number, aside = x.double(), 2 * torch.finfo(x.dtype).eps * x.double().abs() + torch.finfo(x.dtype).tiny
    low, high = cdf(number - aside).double(), cdf(number + aside).double()
    drawn = torch.rand(len(x), generator=rng, dtype=torch.float64).to(x.device)
    return low + drawn * (high - low)


def _bound(n: int, level: float) -> float:
    # P(sup |F_n - F| > e) <= 2 exp(-2 n e^2) (Dvoretzky, Kiefer, Wolfowitz 1956, with Massart's constant, 1990), and
    # Hoeffding's inequality (1963, theorem 2, of means of numbers in [0, 1]) has the same right-hand side for the share
    # of one cell, the mean of n indicators; solved for e at the level.
    return math.sqrt(math.log(2 / level) / (2 * n))


def _has_law(name: str, u: Tensor, law: str, level: float, rounding: float) -> Finding:
    """Compare the empirical distribution of n numbers with the declared one, both as seen through its cdf."""
    n, ordered = len(u), u.sort().values
    ranks = torch.arange(n + 1, dtype=torch.float64, device=u.device) / n
    # F_n steps from (k - 1)/n to k/n at the k-th number, so that its largest distance from the identity, which is the
    # law as seen through its own cdf, is at one end of a step.
    deviation = float(torch.maximum((ranks[1:] - ordered).abs(), (ordered - ranks[:-1]).abs()).max())
    bound = _bound(n, level) + rounding
    if deviation <= bound:
        return HOLDS
    return broken(
        f"`{name}` is not {law}: the distributions are {deviation:.3g} apart, and chance explains {bound:.3g}",
        argument=f"`{name}`, {n} samples",
        got=f"{deviation:.6g}",
        expected=f"at most {bound:.6g}",
    )


def _shared(x: Tensor, again: Tensor) -> str:
    """Say how many numbers are drawn for all samples: few in a call, and others in the next one."""
    one, other = set(x.tolist()), set(again.tolist())
    return f"{len(x)} samples share {_counted(len(one))}" if one.isdisjoint(other) and len(one) < len(x) / 100 else ""


def _counted(count: int) -> str:
    return "one draw" if count == 1 else f"{count} draws"


def _is_drawn_an_element(noise: Noise, rows: Tensor, rng: torch.Generator) -> bool:
    """Whether the first two elements of a sample have the declared law each, and are independent."""
    a, b = (_uniform(noise.cdf, rows[:, k], rng) for k in range(2))
    rounding = torch.finfo(rows.dtype).eps
    found = [*(_has_law("", u, noise.law, LEVEL, rounding) for u in (a, b)), _independent("", a, b, LEVEL)]
    return all(finding is HOLDS for finding in found)


def _independent(what: str, a: Tensor, b: Tensor, level: float) -> Finding:
    """Compare the share of each cell of a grid with that of independent uniform numbers."""
    # Where a and b are independent and uniform, a pair is in cell (i, j) with probability 1/4 * 1/4. No two pairs share
    # a sample, so the n indicators of a cell are independent, as Hoeffding's inequality asks.
    n, cell = len(a), ((a * CELLS).long().clamp(0, CELLS - 1), (b * CELLS).long().clamp(0, CELLS - 1))
    counts = torch.bincount(cell[0] * CELLS + cell[1], minlength=CELLS**2).double() / n
    deviation, bound = float((counts - 1 / CELLS**2).abs().max()), _bound(n, level)
    if deviation <= bound:
        return HOLDS
    return broken(
        f"{what} are not independent: a cell of their grid has a share {deviation:.3g} off, and chance explains "
        f"{bound:.3g}",
        argument=what,
        got=f"{deviation:.6g}",
        expected=f"at most {bound:.6g}",
        likely="one draw is used twice" if torch.allclose(a, b) else "",
    )


DISTRIBUTION = Law(
    name="distribution",
    family="randomness",
    statement=r"\omega_i \sim \text{declared law, independent}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    needs_spec=True,
)
