"""Run a program on both machines and say where they differ, the documented deviations aside.

Each deviation is marked by `Differs:`, with the beginning of its row in docs/text/engine.md; test_deviations.py holds
the marks and the rows against each other.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from text.parity.machines import Machine, TextMachine, TorchMachine, UserError, variable_places
from text.parity.programs import Call, Program

#: What an error is about. The two say it in the same words but for the class: Tensor or Variable.
TOPICS = (
    "incorrect number of gradients",
    "different than None at position",
    "expected Variable or None (got",
    "a second time",
    "modified by an inplace operation",
    "does not require grad and does not have a grad_fn",
    "can't retain_grad",
    "cannot register a hook",
    "cannot be registered on non-leaf",
    "only change requires_grad flags of leaf",
    "appears to not have been used",
    "does not require grad",
    "gradients",
)

#: What is noticed before the first call is made and paid for, and by torch in the middle.
# Differs: notices a freed graph
EARLY = ("a second time", "modified by an inplace operation", "appears to not have been used")


def differences(
    program: Program, *, max_concurrency: int | None = None, counts: Counter[str] | None = None
) -> list[str]:
    """Return what differs, step by step; the first step that both machines refuse in the middle ends the program."""
    torch, ours = TorchMachine(), TextMachine(max_concurrency)
    graph = Graph()
    for number, step in enumerate(program.steps):
        before, grads = ours.state(), torch.grads()
        expected, actual = torch.run(step), ours.run(step)
        graph.note(step, torch)
        found = _step_differences(step, torch, ours, expected, actual, graph, grads)
        if counts is not None:
            counts[step[0]] += 1
            counts[f"error: {_topic(expected)}"] += isinstance(expected, Exception)
            counts["backward calls"] += sum(entry[0] == "backward" for entry in ours.log)
        if found:
            return [f"seed {program.seed}, step {number} {step}: {line}" for line in found]
        if isinstance(expected, Exception) and step[0] in ("backward", "grad"):
            return _unchanged(program, before, ours.state()) if isinstance(actual, Exception) else []
        _settle_retained(step, torch, ours, graph)
        torch.log.clear(), ours.log.clear(), torch.filled.clear(), ours.filled.clear()
        if torch.state() != ours.state():
            return [f"seed {program.seed}, step {number} {step}: state\n  {torch.state()}\n  {ours.state()}"]
    return []


def _settle_retained(step: tuple[Any, ...], torch: Machine, ours: Machine, graph: Graph) -> None:
    """Give a retained Variable that leads to nothing wanted the grad that ours has: torch fills it."""
    # Differs: with `inputs=`, retained grads and hooks
    if step[0] in ("backward", "grad") and step[3] is not None:
        for place, value in enumerate(torch.values):
            if torch.is_variable(value) and value.retains_grad and not graph.leads(place, step[3]):
                grad = ours.values[place].grad
                value.grad = None if grad is None else torch.make(ours.number(grad))


class Graph:
    """Which calls a pass with `inputs=` needs, found from the program alone."""

    def __init__(self) -> None:
        self.calls: dict[int, tuple[Call, list[int]]] = {}
        self.maker: dict[int, int] = {}
        self.requiring: dict[int, tuple[bool, ...]] = {}

    def note(self, step: tuple[Any, ...], torch: Machine) -> None:
        if step[0] == "call":
            call: Call = step[1]
            outputs = len(call.outputs) + (call.returns_input is not None)
            first = len(torch.values) - outputs
            flags = next(entry[2] for entry in torch.log if entry[0] == "forward")
            self.calls[call.number] = (call, [value for value in call.inputs if not isinstance(value, tuple)])
            self.requiring[call.number] = flags
            for place in range(first, len(torch.values)):
                if torch.is_variable(torch.values[place]) and torch.values[place].grad_fn is not None:
                    self.maker[place] = call.number

    def wanted(self, inputs: tuple[int, ...] | None, call: Call, flags: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return torch's flags, narrowed to what leads to the inputs."""
        # Differs: with `inputs=`, `needs_input_grad`
        narrowed = [False] * (1 + len(call.inputs)) + [False]
        for place in range(len(flags)):
            narrowed[place] = flags[place]
        if inputs is not None:
            for place in variable_places(call):
                narrowed[1 + place] = flags[1 + place] and self.leads(call.inputs[place], inputs)
        return tuple(narrowed)

    def leads(self, value: int, inputs: tuple[int, ...]) -> bool:
        return value in inputs or (value in self.maker and self.runs(self.maker[value], inputs))

    def runs(self, number: int, inputs: tuple[int, ...] | None) -> bool:
        call, _ = self.calls[number]
        return inputs is None or any(
            self.requiring[number][1 + place] and self.leads(call.inputs[place], inputs)
            for place in variable_places(call)
        )


def _step_differences(
    step: tuple[Any, ...], torch: Machine, ours: Machine, expected: Any, actual: Any, graph: Graph, grads: list[Any]
) -> list[str]:
    inputs = {"backward": step[3], "grad": step[3]}.get(step[0]) if len(step) > 3 else None
    wanted = [entry for entry in (_deviations(entry, inputs, graph) for entry in torch.log) if entry is not None]
    got = [_padded(entry, graph) for entry in ours.log]
    early = isinstance(actual, Exception) and _topic(actual) in EARLY
    wanted, got = _settled(wanted, ours), _settled(got, ours)
    # Differs: post-accumulate hooks
    # A leaf that nothing reached, or whose requires_grad was turned off, is not filled; torch calls its hook too.
    unchanged = {place for place in torch.filled if torch.number(torch.values[place].grad) == grads[place]}
    filled = sorted(place for place in torch.filled if place in ours.filled or place not in unchanged)
    lines = []
    if not _same(expected, actual, step):
        lines.append(f"torch: {expected!r}, ours: {actual!r}")
    if (got != []) if early else (wanted != got):
        lines.append(f"log\n  torch: {wanted}\n  ours:  {got}")
    if not isinstance(expected, Exception) and filled != sorted(ours.filled):
        lines.append(f"filled: torch {filled}, ours {ours.filled}")
    return lines


def _settled(log: list[tuple[Any, ...]], ours: Machine) -> list[tuple[Any, ...]]:
    """Order the hooks of leaves that are complete at the same moment; torch leaves it to a heap."""
    # Differs: hooks of leaves
    result: list[tuple[Any, ...]] = []
    for entry in log:
        place = len(result)
        if entry[0] == "hook" and ours.values[entry[1]].is_leaf:
            while place and result[place - 1][0] == "hook" and result[place - 1][1] > entry[1]:
                if not ours.values[result[place - 1][1]].is_leaf:
                    break
                place -= 1
        result.insert(place, entry)
    return result


def _deviations(entry: tuple[Any, ...], inputs: tuple[int, ...] | None, graph: Graph) -> tuple[Any, ...] | None:
    """Return what our log should say where torch's says `entry`; None for nothing."""
    kind, number = entry[0], entry[1]
    if kind == "forward":
        return _padded(entry, graph)
    if kind == "hook":
        # Nothing was said, or of a root from which nothing wanted can be reached: so nobody is asked.
        asked = inputs is None or graph.leads(number, inputs)
        return entry if asked and entry[2] is not None else None
    call_number = number if kind == "backward" else graph.maker[number]
    # Differs: a call that no gradient reaches
    if all(grad is None for grad in entry[2]):
        return None
    # Differs: runs the call of an inner Variable
    if not graph.runs(call_number, inputs):
        return None  # the call of an inner Variable in inputs=, of which nothing is wanted
    if kind == "backward":
        call, _ = graph.calls[number]
        return (kind, number, entry[2], graph.wanted(inputs, call, entry[3]))
    call, _ = graph.calls[call_number]
    if kind == "posthook" and inputs is not None:
        # Differs: with `inputs=`, the hook of a node
        flags = graph.wanted(inputs, call, (True,) * (1 + len(call.inputs)))
        wanted = [flags[1 + place] or not graph.requiring[call_number][1 + place] for place in variable_places(call)]
        return (*entry[:3], tuple(grad if want else None for grad, want in zip(entry[3], wanted, strict=True)))
    return entry


def _padded(entry: tuple[Any, ...], graph: Graph) -> tuple[Any, ...]:
    """A default that was left out has a place in our flags; torch's combined form has none."""
    # Differs: keyword arguments of a combined forward
    if entry[0] not in ("forward", "backward"):
        return entry
    flags = entry[-1]
    n = 2 + len(graph.calls[entry[1]][0].inputs)
    return (*entry[:-1], (*flags, *[False] * (n - len(flags))))


def _same(expected: Any, actual: Any, step: tuple[Any, ...]) -> bool:
    if isinstance(expected, Exception) and isinstance(actual, Exception):
        return type(expected) is type(actual) and _topic(expected) == _topic(actual)
    # Differs: `grad` of an input without feedback
    if step[0] == "grad" and _topic(expected) == "appears to not have been used" and isinstance(actual, list):
        return None in actual  # it was used, and nothing was said of it
    return not isinstance(expected, Exception) and not isinstance(actual, Exception) and expected == actual


def _topic(error: Any) -> str:
    if isinstance(error, UserError):
        return "user error"
    return next((topic for topic in TOPICS if topic in str(error)), str(error)) if isinstance(error, Exception) else ""


def _unchanged(program: Program, before: list[Any], after: list[Any]) -> list[str]:
    """All or nothing: torch leaves what it had accumulated until then."""
    # Differs: leaves what was accumulated until an error
    return [] if before == after else [f"seed {program.seed}: a failed pass changed\n  {before}\nto\n  {after}"]
