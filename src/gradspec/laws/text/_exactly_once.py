r"""Each backward runs once in a pass, and a text that is passed on unchanged counts once, even by two paths.

Why it matters: a backward that a model writes is paid for; and in
a chain of k diamonds, copies would make 2^k copies of one remark.

What breaks it: a `backward` that starts a pass of its own, a copy of the gradient returned in place of the gradient.

Remedy: return feedback and let the engine carry it; return `grad_out` itself if nothing is to be added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, feedback, nodes_of, say
from gradspec.laws.text.support._gate import Through
from gradspec.laws.text.support._watch import Ran, leaves_of, watch
from gradspec.text import Variable


def _check(trial: TextTrial) -> Finding:
    inputs = Inputs.of(trial).through(Through.apply)
    outputs = inputs.outputs(trial)
    if not outputs:
        return not_applicable(NOTHING_WANTED)
    # Two paths to each output, and the same feedback along both.
    said = feedback(trial, outputs)
    paths = [Through.apply(output) for output in outputs for _ in range(2)]
    nodes, log = nodes_of(paths), list[Ran]()
    watch(nodes, log)
    say(paths, [what for what in said for _ in range(2)])
    for node in nodes:
        if (times := sum(ran.node is node for ran in log)) > 1:
            return broken(
                f"the backward of {node.name().removesuffix('Backward')} runs {times} times in one pass",
                got=str(times),
                expected="1",
                likely="a backward calls backward",
            )
    for ran in log:
        if copies := list(_copies(ran)):
            return broken(
                f"{ran.name} returns a copy of the gradient that it was given: by two paths it would count twice",
                got=repr(copies[0]),
                expected="the gradient itself",
            )
    return HOLDS


def _copies(ran: Ran) -> Iterator[Variable]:
    given = [gradient for gradient in ran.given if gradient is not None and _says_something(gradient.data)]
    for slot, value in zip(ran.slots, ran.values, strict=False):
        for returned in leaves_of(slot, value):
            if isinstance(returned, Variable) and all(returned is not gradient for gradient in given):
                yield from (returned for gradient in given if returned.data == gradient.data)


def _says_something(data: Any) -> bool:
    return any(isinstance(text, str) and text for text in (data if isinstance(data, list) else [data]))


EXACTLY_ONCE = Law(
    name="exactly_once",
    family="text",
    statement=r"\#B = 1",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
