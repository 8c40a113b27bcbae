r"""Backward returns None for arguments that are not Variables, and for those that get no feedback by the spec.

A Variable that wants no gradient takes none from another. If backward waits for a model, it works nothing out for it,
and asks nothing whose answer is of use to it alone.

Why it matters: feedback on data reaches nobody; if a model wrote it, it was paid for.

What breaks it: the gradient returned for a separator as well, `needs_input_grad` not asked, or asked of all at once.

Remedy: return None there; look at `ctx.needs_input_grad`, and in a list at `ctx.wants`, before a model is called.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable, raised
from gradspec.laws.text.support._asked import asked_in_vain
from gradspec.laws.text.support._call import (
    NOTHING_WANTED,
    Inputs,
    addressed,
    alone,
    heard,
    nodes_of,
    once_each,
    say,
    shown_parts,
)
from gradspec.laws.text.support._watch import Ran, leaves_of, watch


def _check(trial: TextTrial) -> Finding:
    log, error = _run(trial, Inputs.of(trial))
    if not log and error is None:
        return not_applicable(NOTHING_WANTED)
    for ran in log:
        for place, (slot, value) in enumerate(zip(ran.slots, ran.values, strict=False)):
            if slot is None and value is not None:
                return broken(
                    f"{ran.name} says something of an argument that holds no Variable",
                    argument=f"argument {place}",
                    got=repr(value),
                    expected="None",
                )
    if error is not None:
        return raised(error, "backward")
    for judge in (_judge_calls, _judge_others, _judge_requests, _judge_places):
        if (finding := judge(trial)) is not HOLDS:
            return finding
    return HOLDS


def _judge_places(trial: TextTrial) -> Finding:
    """Ask for a gradient of every Variable: those outside `wrt` must get none all the same."""
    inputs = Inputs.of(trial, every=True)
    _, error = _run(trial, inputs)
    if error is not None:
        return raised(error, "backward, where every Variable wants a gradient,")
    for place, leaf in inputs.leaves.items():
        if place.partition("[")[0] not in trial.spec.wrt and leaf.grad is not None:
            return broken(
                "feedback reaches an argument that is not in `wrt`",
                argument=f"`{place}`",
                got=repr(leaf.grad.data),
                expected="None",
            )
    return HOLDS


def _judge_calls(trial: TextTrial) -> Finding:
    """Of a backward that waits: have each Variable in turn want no gradient, and see that nothing is asked for it."""
    places = once_each(trial) if trial.spec.io_bound else []
    for left_out in places if len(places) > 1 else ():
        log, _ = _run(trial, Inputs.of(trial, but=left_out))
        for ran in log:
            values = [v for slot, value in zip(ran.slots, ran.values, strict=False) for v in leaves_of(slot, value)]
            for value, edge in zip(values, ran.node.next_functions, strict=False):
                if value is not None and edge.node is None:
                    return broken(
                        f"{ran.name} works out feedback on a Variable that wants none",
                        argument=f"`{left_out}`",
                        got=repr(value),
                        expected="None",
                    )
    return HOLDS


def _judge_others(trial: TextTrial) -> Finding:
    """Have each Variable in turn want no gradient, and compare what is said of the others.

    A model that is asked something else may choose other words: of a backward that waits, whether it says anything.
    """
    expected, places = alone(trial), once_each(trial)
    for left_out in places if len(places) > 1 else ():
        inputs = Inputs.of(trial, but=left_out)
        _, error = _run(trial, inputs)
        if error is not None:
            return raised(error, f"backward, where `{left_out}` wants no gradient,")
        for place, said in heard(inputs.leaves).items():
            if bool(said) != bool(expected[place]) or (not trial.spec.io_bound and said != expected[place]):
                return broken(
                    f"what is said of `{place}` is another where `{left_out}` wants no gradient",
                    argument=f"`{place}`",
                    got=shown_parts(said),
                    expected=shown_parts(expected[place]),
                )
    return HOLDS


def _judge_requests(trial: TextTrial) -> Finding:
    """Of a backward that asks models: see that none is asked only for a Variable that wants nothing."""
    found = asked_in_vain(trial) if trial.spec.io_bound else None
    if found is None:
        return HOLDS
    left_out, request = found
    return broken(
        f"a model is asked what is of use only to `{left_out}`, where `{left_out}` wants no gradient",
        argument=f"`{left_out}`",
        got=repr(request),
        expected="no call",
        likely="look at ctx.needs_input_grad before the call",
    )


def _run(trial: TextTrial, inputs: Inputs) -> tuple[list[Ran], Exception | None]:
    log: list[Ran] = []
    outputs, said = addressed(trial, inputs)
    watch(nodes_of(outputs), log)
    try:
        say(outputs, said)
    except Exception as error:
        return log, error
    return log, None


NONE_FOR_DATA = Law(
    name="none_for_data",
    family="text",
    statement=r"x_i \text{ is data} \Rightarrow \bar{x}_i = \text{None}",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
