r"""Backward returns one gradient for each argument of forward, in the order of its signature.

Why it matters: a gradient at the wrong position is feedback on another text. A list or a dict of texts is one argument,
and its gradient has its structure.

What breaks it: a separator or an option without a None of its own, a list of gradients given out as several, a gradient
of None, as that of an output of which nothing is said, that is used like another.

Remedy: end `backward` with one value for each parameter of `forward` after ctx, None for data. Only defaults that were
left out at the end of a call need none.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable, raised
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, feedback, nodes_of, say
from gradspec.laws.text.support._watch import Ran, watch


def _check(trial: TextTrial) -> Finding:
    outputs = Inputs.of(trial).outputs(trial)
    if not outputs:
        return not_applicable(NOTHING_WANTED)
    log: list[Ran] = []
    watch(nodes_of(outputs), log)
    error, said = None, feedback(trial, outputs)
    try:
        say(outputs, said)
    except Exception as caught:
        error = caught
    for ran in log:
        got, least, most = len(ran.values), ran.node._least, len(ran.slots)
        if ran.returned is not None and not least <= got <= most:
            return broken(
                f"{ran.name} returns another number of gradients than forward has arguments",
                got=str(got),
                expected=str(most),
                likely="None is missing for an argument that is data" if got < least else "one None too many",
            )
    if error is not None:
        return raised(error, "backward")
    for place in range(len(outputs)) if len(outputs) > 1 else ():
        outputs = Inputs.of(trial).outputs(trial)
        said = [what if k == place else None for k, what in enumerate(feedback(trial, outputs))]
        try:
            say(outputs, said)
        except Exception as caught:
            return raised(caught, f"backward, where only output {place} gets feedback,")
    return HOLDS


ARITY = Law(
    name="arity",
    family="text",
    statement=r"|B(\bar{y})| = |x|",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
