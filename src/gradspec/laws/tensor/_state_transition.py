r"""Declared state changes to its declared next value once for each forward pass, at the end of the first backward pass.

Why it matters: a memory bank or a running mean that moves twice, or at the wrong moment, trains on other numbers
than the author thinks, and recomputation or a second loss changes the result.

What breaks it: state moved in forward (twice under checkpointing, and in evaluation), moved in each backward pass,
moved before the pass is over.

Remedy: move state in an explicit call; or remember on ctx whether it has moved, and move it in a callback at the end
of the backward pass.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Trial, not_applicable
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._state import episodes


def _check(trial: Trial) -> Finding:
    if not trial.spec.effects.writes:
        return not_applicable("the spec declares no state that moves")
    for happened, got, expected in episodes(trial):
        for name, right in expected.items():
            finding = compare(trial, f"state `{name}` after {happened}", got[name], right)
            if finding is not HOLDS:
                return finding
    return HOLDS


STATE_TRANSITION = Law(
    name="state_transition",
    family="effects",
    statement=r"s \to s'(x) \text{ once a forward pass, at the end of its first backward pass}",
    check=_check,
    doc=__doc__ or "",
    requires=("primal",),
    needs_spec=True,
)
