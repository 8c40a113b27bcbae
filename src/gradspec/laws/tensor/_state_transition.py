r"""Declared state changes to its declared next value once for each forward pass, at the end of the first backward pass.

Why it matters: a memory bank or a running mean that moves twice, or at the wrong moment, trains on other numbers
than the author thinks, and recomputation or a second loss changes the result.

What breaks it: state moved in forward (twice under checkpointing, and in evaluation), moved in each backward pass,
moved before the pass is over.

Remedy: move state in an explicit call; or remember on ctx whether it has moved, and move it in a callback at the end
of the backward pass.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._compare import compare, largest
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._state import episodes

#: How near to a multiple of the move that is declared another one is that is called so.
_NEAR = 1e-6


def _check(trial: Trial) -> Finding:
    if not trial.spec.effects.writes:
        return not_applicable("the spec declares no state that moves")
    for happened, got, expected in episodes(trial):
        for name, right in expected.items():
            finding = compare(trial, f"state `{name}` after {happened}", got[name], right)
            if finding is not HOLDS:
                moved = quietly(lambda: _how_far(Inputs.of(trial).values[name], got[name], right))  # noqa: B023  # called at once
                return replace(finding, likely=moved, reason=None) if moved else finding
    return HOLDS


def _how_far(before: Tensor, got: Tensor, expected: Tensor) -> str:
    """Say how many times as far the state has moved as it should; nothing where that is no one number."""
    should, has = (t.double() - before.double() for t in (expected, got))
    if not bool(should.any()):
        return "it moves where it should stay as it was" if bool(has.isfinite().all()) else ""
    times = float((should * has).sum() / (should * should).sum())
    if abs(times - 1) < _NEAR or not largest(has - times * should) <= _NEAR * largest(should):
        return ""
    return f"it moves {times:.4g} times as far as it should" if abs(times) > _NEAR else "it stays as it was"


STATE_TRANSITION = Law(
    name="state_transition",
    family="effects",
    statement=r"s \to s'(x) \text{ once a forward pass, at the end of its first backward pass}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    needs_spec=True,
)
