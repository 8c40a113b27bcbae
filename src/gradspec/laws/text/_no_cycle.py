r"""Outputs and nodes die with their last reference, before a backward pass and after one.

Why it matters: a graph holds every text and every conversation of a run; a cycle keeps them until the garbage collector
comes.

What breaks it: an output kept on ctx as an attribute: the output holds its node, and the node is the ctx.

Remedy: keep it with `ctx.save_for_backward`, which makes no cycle.
"""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, feedback, nodes_of, say

#: How often it is looked again: the thread that ran an async backward lets go of it a moment later, a cycle never does.
_MOMENTS = 100


def _check(trial: TextTrial) -> Finding:
    if not Inputs.of(trial).outputs(trial):
        return not_applicable(NOTHING_WANTED)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for ran in (False, True):
            if alive := _alive(trial, ran=ran):
                when = "after a backward pass" if ran else "before any backward pass"
                return broken(
                    f"{', '.join(alive)} outlive their last reference, {when}",
                    likely="an output sits on ctx outside save_for_backward: a reference cycle",
                )
    finally:
        if collecting:
            gc.enable()
    return HOLDS


def _alive(trial: TextTrial, *, ran: bool) -> list[str]:
    outputs = Inputs.of(trial).outputs(trial)
    if ran:
        say(outputs, feedback(trial, outputs))
    names: dict[weakref.ref[Any], str] = {
        weakref.ref(output): f"output {place}" for place, output in enumerate(outputs)
    }
    names |= {weakref.ref(node): f"the node of {node.name().removesuffix('Backward')}" for node in nodes_of(outputs)}
    del outputs
    alive = list(names.values())
    for _ in range(_MOMENTS):
        alive = [name for reference, name in names.items() if reference() is not None]
        if not alive:
            break
        time.sleep(0.01)
    return alive


NO_CYCLE = Law(
    name="no_cycle",
    family="text",
    statement=r"\operatorname{refs}(y) = 0 \Rightarrow y \text{ is freed}",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
