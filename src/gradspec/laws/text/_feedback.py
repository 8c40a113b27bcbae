r"""Backward gives each argument the feedback that the case expects.

Why it matters: feedback on the wrong text, or incomplete feedback, misleads an optimizer, and no other law notices.

What breaks it: gradients returned in another order than the arguments, a part of the feedback dropped.

Remedy: return a gradient for each argument in the order of `forward`, and say in the case what it should be.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Status, TextTrial, broken, not_applicable
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, feedback, say


def _check(trial: TextTrial) -> Finding:
    if not trial.case.says:
        return not_applicable("the case does not say what the feedback on an argument should be")
    inputs = Inputs.of(trial)
    outputs = inputs.outputs(trial)
    if not outputs:
        return not_applicable(NOTHING_WANTED)
    say(outputs, feedback(trial, outputs))
    for place, expected in trial.case.says.items():
        leaf = inputs.leaves.get(place)
        if leaf is None and expected is not None:
            return Finding(
                status=Status.ERROR,
                message=f"the case expects feedback on `{place}`, where no Variable wants any",
                likely=f"the places are {', '.join(f'`{known}`' for known in inputs.leaves) or 'none'}",
            )
        got = None if leaf is None or leaf.grad is None else leaf.grad.data
        if callable(expected):
            if not expected(got):
                return broken("the feedback is not what the case asks for", argument=f"`{place}`", got=repr(got))
        elif got != expected:
            return broken(
                "the feedback says something else", argument=f"`{place}`", got=repr(got), expected=repr(expected)
            )
    return HOLDS


FEEDBACK = Law(
    name="feedback",
    family="text",
    statement=r"\bar{x} = B(\bar{y})",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
    needs_spec=True,
)
