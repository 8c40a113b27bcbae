r"""Contributions are in the order of the graph, the same for a sequential pass and for a concurrent one.

Several calls share their arguments; the call whose turn comes first is held up longest, so that the calls end in the
other order. A Function that the spec declares I/O-bound must say so itself, or hand its calls to `defer`: otherwise
nothing overlaps.

Why it matters: a run that cannot be repeated cannot be compared, cached or debugged.

What breaks it: a counter or a history that the calls share, `io_bound = True` left out.

Remedy: keep on ctx what a backward needs, and nothing between calls; declare `io_bound`, or write an async `backward`.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, TextTrial, broken, not_applicable
from gradspec.laws.text._accumulation import judge
from gradspec.laws.text.support._call import NOTHING_WANTED, Inputs, Said, alone, feedback, heard, nodes_of, say
from gradspec.laws.text.support._watch import Ran, leaves_of, watch
from gradspec.text import Deferred

CALLS = 3
#: The longest wait, in seconds: long against the start of a thread.
WAIT = 0.02


def _check(trial: TextTrial) -> Finding:
    outputs = Inputs.of(trial).outputs(trial)
    if not outputs:
        return not_applicable(NOTHING_WANTED)
    parts = [alone(trial, number) for number in range(CALLS)]
    in_order = {place: [said for part in reversed(parts) for said in part[place]] for place in parts[0]}
    log: list[Ran] = []
    heard_in_turn = _run(trial, 1, log)
    waiting = sorted({ran.name for ran in log if _waits(ran)})
    if trial.spec.io_bound is not bool(waiting):
        return broken(
            "the spec and the Function do not agree on whether the backward waits for something",
            got=f"{', '.join(waiting) or 'no Function'} waits",
            expected=f"io_bound={trial.spec.io_bound}",
        )
    if (finding := judge("a sequential pass", heard_in_turn, in_order)) is not HOLDS:
        return finding
    return judge("a concurrent pass", _run(trial, CALLS, []), in_order)


def _run(trial: TextTrial, limit: int, log: list[Ran]) -> dict[str, list[Said]]:
    inputs = Inputs.of(trial)
    calls = [inputs.outputs(trial) for _ in range(CALLS)]
    for number, outputs in enumerate(calls):
        watch(nodes_of(outputs), log, wait=WAIT * number / CALLS if limit > 1 else 0)
    said = [what for number, outputs in enumerate(calls) for what in feedback(trial, outputs, number)]
    say([output for outputs in calls for output in outputs], said, max_concurrency=limit)
    return heard(inputs.leaves)


def _waits(ran: Ran) -> bool:
    function = ran.node._function
    values = (v for slot, value in zip(ran.slots, ran.values, strict=False) for v in leaves_of(slot, value))
    return function.io_bound or function._is_async or any(isinstance(value, Deferred) for value in values)


ORDER = Law(
    name="order",
    family="text",
    statement=r"\bar{x}^{(k)} = \bar{x}^{(1)}",
    check=_check,
    doc=__doc__ or "",
    kinds=("text",),
)
