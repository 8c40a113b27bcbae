"""Why a gradient that is the only one required is wrong: another argument decides about it."""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, vjp
from gradspec.laws.tensor.support._compare import compare
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._reference import reference


def why_not_asked(trial: Trial, finding: Finding) -> Reason | None:
    """Return which other argument has to require a gradient, too, for the one of the finding to have its own."""
    inputs = Inputs.of(trial)
    name = next((name for name in inputs.wrt if f"`{name}` (the only one required)" in finding.argument), None)
    if name is None:
        return None
    expected = vjp(reference(trial.spec), inputs, seed=trial.seed)[name]
    for other in inputs.wrt:
        if other == name:
            continue
        both = Inputs(inputs.values, (name, other))
        got = quietly(lambda both=both: vjp(trial.spec.function, both, seed=trial.seed))  # type: ignore[misc]  # a default
        if got is not None and compare(trial, "gradient", got[name], expected) is HOLDS:
            said = f"right where `{other}` requires a gradient too: whether that one does decides about `{name}`"
            return Reason(kind="asked of another", words=said, evidence={"argument": other})
    return None
