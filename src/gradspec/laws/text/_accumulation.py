r"""A leaf that two calls use gets one gradient with the feedback of each call; that of the latest call comes first.

Two passes one after the other add up likewise, in the order of the passes.

Why it matters: a prompt is used for every question of a batch; feedback on one answer must not overwrite feedback on
another, and nothing may be repeated.

What breaks it: a backward that writes into `.grad` itself, one Variable that is returned for every call.

Remedy: return new Variables from `backward`, and leave `.grad` to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, Said, alone, feedback, heard, say


def _check(trial: TextTrial) -> Finding:
    inputs = Inputs.of(trial)
    first, second = inputs.outputs(trial), inputs.outputs(trial)
    if not first:
        return not_applicable(NOTHING_WANTED)
    parts = [alone(trial, number) for number in (0, 1)]
    if not any(parts[0].values()):
        return not_applicable("nothing is said of an argument in this case")
    say([*first, *second], [*feedback(trial, first, 0), *feedback(trial, second, 1)])
    together = {place: parts[1][place] + parts[0][place] for place in parts[0]}
    if (finding := judge("two calls in one pass", heard(inputs.leaves), together)) is not HOLDS:
        return finding
    inputs = Inputs.of(trial)
    for number in (0, 1):
        outputs = inputs.outputs(trial)
        say(outputs, feedback(trial, outputs, number))
    in_turn = {place: parts[0][place] + parts[1][place] for place in parts[0]}
    return judge("two passes", heard(inputs.leaves), in_turn)


def judge(what: str, got: Mapping[str, list[Said]], expected: Mapping[str, list[Said]]) -> Finding:
    """Compare the contributions to the gradient of each leaf."""
    for place, said in got.items():
        if said != expected[place]:
            return broken(
                f"{what}: the gradient is not made of what each call says alone",
                argument=f"`{place}`",
                got=_shown(said),
                expected=_shown(expected[place]),
            )
    return HOLDS


def _shown(said: list[Said]) -> str:
    return ", ".join(repr(data) for data, _, _ in said) or "nothing"


ACCUMULATION = Law(
    name="accumulation",
    family="text",
    statement=r"\bar{x} = B_2(\bar{y}_2) \cup B_1(\bar{y}_1)",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
