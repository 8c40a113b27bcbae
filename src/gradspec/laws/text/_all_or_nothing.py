r"""After a pass that failed, every `.grad` and the graph are as they were: the pass can be run again.

A pass runs, then one that fails after the backward under test, then one that does not fail.

Why it matters: a model that times out ends a pass in the middle; half of the feedback would look like all of it.

What breaks it: a backward that writes into `.grad`, or that uses up what it kept: a list that it empties, a file that
it reads to its end.

Remedy: return gradients, and keep with `ctx.save_for_backward` what a second run needs as well.
"""

from __future__ import annotations

from gradspec.law import Finding, Law, TextTrial, broken, not_applicable, raised
from gradspec.laws.text._accumulation import judge
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, feedback, heard, say
from gradspec.laws.text.support._gate import Gate, Gated, GateError


def _check(trial: TextTrial) -> Finding:
    gate = Gate()
    inputs = Inputs.of(trial).through(lambda leaf: Gated.apply(leaf, gate))
    outputs = inputs.outputs(trial)
    if not outputs:
        return not_applicable(NOTHING_WANTED)
    say(outputs, feedback(trial, outputs), retain_graph=True)
    before = {place: leaf.grad for place, leaf in inputs.leaves.items()}
    parts = heard(inputs.leaves)
    if not any(parts.values()):
        return not_applicable("nothing is said of an argument in this case, so nothing can fail behind it")
    gate.closed = True
    try:
        say(outputs, feedback(trial, outputs, 1), retain_graph=True)
    except GateError:
        pass
    except Exception as error:
        return raised(error, "a second pass over a graph that was kept")
    else:
        return broken("a pass that says something of an argument once says nothing of it the second time")
    for place, leaf in inputs.leaves.items():
        if leaf.grad is not before[place]:
            return broken(
                "a pass that failed has changed a gradient",
                argument=f"`{place}`",
                got=repr(leaf.grad),
                expected=repr(before[place]),
            )
    gate.closed = False
    try:
        say(outputs, feedback(trial, outputs))
    except Exception as error:
        return raised(error, "the pass after one that failed")
    twice = {place: [*said, *said] for place, said in parts.items()}
    return judge("the pass after one that failed", heard(inputs.leaves), twice)


ALL_OR_NOTHING = Law(
    name="all_or_nothing",
    family="text",
    statement=r"\text{error} \Rightarrow \bar{x} = \bar{x}_{\text{before}}",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
