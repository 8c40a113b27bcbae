r"""A leaf that two calls use gets one gradient with the feedback of each call; that of the latest call comes first.

Two passes one after the other add up likewise, in the order of the passes.

Why it matters: a prompt is used for every question of a batch; feedback on one answer must not overwrite feedback on
another, and nothing may be repeated.

What breaks it: a backward that writes into `.grad` itself or changes the gradient that it is given, one Variable that
is returned for every call, a text that forward keeps on the class, where the next call puts its own.

Remedy: return new Variables from `backward`, leave `.grad` to the engine, and keep on ctx what backward needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable
from gradspec.laws.text.support._call import (
    NOTHING_WANTED,
    Inputs,
    Said,
    alone,
    feedback,
    heard,
    nodes_of,
    say,
    shown_parts,
)
from gradspec.laws.text.support._watch import Ran, watch

#: How many of the other cases are called beside one.
OTHERS = 2


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
    if (finding := judge("two passes", heard(inputs.leaves), in_turn)) is not HOLDS:
        return finding
    return _beside(trial, parts[0]) if (finding := _unchanged(trial)) is HOLDS else finding


def _unchanged(trial: TextTrial) -> Finding:
    """Look at the gradients that backward is given: another Variable may get the same."""
    outputs, log = Inputs.of(trial).outputs(trial), list[Ran]()
    watch(nodes_of(outputs), log)
    say(outputs, feedback(trial, outputs))
    for ran in log:
        if ran.changed:
            before, now = ran.changed
            return broken(
                f"{ran.name} changes the gradient that it is given: whoever else gets it gets the change",
                got=repr(now),
                expected=repr(before),
            )
    return HOLDS


def _beside(trial: TextTrial, said: Mapping[str, list[Said]]) -> Finding:
    """Compare what is said of a call with what is said of it where another one was made before its backward pass."""
    for other in _others(trial):
        inputs = Inputs.of(trial)
        outputs = inputs.outputs(trial)
        try:
            other()
        except Exception:  # the function does not take such texts: its own case says so
            continue
        say(outputs, feedback(trial, outputs))
        if (finding := judge("another call before its backward pass", heard(inputs.leaves), said)) is not HOLDS:
            return finding
    return HOLDS


def _others(trial: TextTrial) -> Iterator[Callable[[], Any]]:
    """Yield the calls of the other cases, and the call of this one with other texts."""
    for other in islice(trial.others(), OTHERS):
        yield partial(Inputs.of(other).call, other)
    changed = Inputs.of(trial)
    for variable in (*changed.leaves.values(), *changed.others.values()):
        if isinstance(variable.data, str):
            variable.data = f"{variable.data} And this."
    yield partial(changed.call, trial)


def judge(what: str, got: Mapping[str, list[Said]], expected: Mapping[str, list[Said]]) -> Finding:
    """Compare the contributions to the gradient of each leaf."""
    for place, said in got.items():
        if said != expected[place]:
            return broken(
                f"{what}: the gradient is not made of what each call says alone",
                argument=f"`{place}`",
                got=shown_parts(said),
                expected=shown_parts(expected[place]),
            )
    return HOLDS


ACCUMULATION = Law(
    name="accumulation",
    family="text",
    statement=r"\bar{x} = B_2(\bar{y}_2) \cup B_1(\bar{y}_1)",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
