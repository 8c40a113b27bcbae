"""How a law makes the call of a case, says something of its outputs, and reads what was said of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from gradspec.law import TextTrial
from gradspec.spec._fault import SpecFaultError
from gradspec.text import FunctionNode, Node, Variable, backward

#: A contribution to a gradient: what it says, its role, and the node that wrote it.
Said: TypeAlias = tuple[Any, str, str]
NOTHING_WANTED = "no output of this case wants a gradient"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The arguments of a case, copied: a law makes as many calls as it likes, and the case stays as it is."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    #: The Variables among them that want a gradient, by where they are: `x`, `texts[0]`, `values['name']`.
    leaves: Mapping[str, Variable]
    #: The Variables that want none, likewise.
    others: Mapping[str, Variable]

    @classmethod
    def of(cls, trial: TextTrial, *, every: bool = False, but: str = "") -> Inputs:
        """Copy the arguments of a case.

        Args:
            trial: the law's view of the case.
            every: whether every Variable wants a gradient; else those that want one in the case.
            but: a place of the one Variable that wants none all the same, here and where else it is given.
        """
        copies: dict[int, Variable] = {}
        given = [*placed(trial.spec.primal, trial.case.args, trial.case.kwargs)]
        left_out = {id(variable) for place, variable in given if place == but}
        marked = {id(v): (every or v.requires_grad) and id(v) not in left_out for _, v in given}

        def copy(variable: Variable) -> Variable:
            return copies.setdefault(id(variable), Variable(variable.data, variable.role, marked[id(variable)]))

        args = replaced(trial.case.args, copy)
        kwargs = replaced(dict(trial.case.kwargs), copy)
        found = dict(placed(trial.spec.primal, args, kwargs))
        return cls(
            args=args,
            kwargs=kwargs,
            leaves={place: variable for place, variable in found.items() if variable.requires_grad},
            others={place: variable for place, variable in found.items() if not variable.requires_grad},
        )

    def through(self, function: Callable[[Variable], Variable]) -> Inputs:
        """Return the same arguments, each leaf handed through a call of its own; the leaves stay those of before."""
        passed: dict[int, Variable] = {}

        def hand(variable: Variable) -> Variable:
            if variable.requires_grad and id(variable) not in passed:
                passed[id(variable)] = function(variable)
            return passed.get(id(variable), variable)

        return Inputs(
            args=replaced(self.args, hand),
            kwargs=replaced(dict(self.kwargs), hand),
            leaves=self.leaves,
            others=self.others,
        )

    def call(self, trial: TextTrial) -> tuple[Any, ...]:
        """Return what the function returns, as a tuple."""
        returned = trial.spec.function(*self.args, **self.kwargs)
        return returned if isinstance(returned, tuple) else (returned,)

    def outputs(self, trial: TextTrial) -> list[Variable]:
        """Return the Variables that the function returns and that want a gradient."""
        return [value for value in self.call(trial) if isinstance(value, Variable) and value.requires_grad]


def feedback(trial: TextTrial, outputs: Sequence[Variable], number: int = 0) -> list[Variable | None]:
    """Return what is said of each output: the case's words, else ours; another number says something else."""
    given = trial.case.feedback
    if given is None:
        given = tuple(_remark(output.data, place) for place, output in enumerate(outputs))
    if len(given) != len(outputs):
        raise SpecFaultError(
            f"case {trial.case.name!r} says something of {len(given)} outputs, and {len(outputs)} want it"
        )
    return [None if said is None else Variable(_numbered(said, number), role="feedback") for said in given]


def addressed(trial: TextTrial, inputs: Inputs) -> tuple[list[Variable], list[Variable | None]]:
    """Return the outputs of a call in which other Variables want a gradient than in the case, and what is said of each.

    The case's words are of the outputs that want a gradient there: not each of them may want one here.
    """
    usual, returned = Inputs.of(trial).call(trial), inputs.call(trial)
    spoken_of = _wanting(usual)
    if trial.case.feedback is None:  # ours, of those that want one only here, too
        spoken_of += [k for k in _wanting(returned) if k not in spoken_of]
    given = feedback(trial, [usual[k] for k in spoken_of])
    pairs = [(returned[k], said) for k, said in zip(spoken_of, given, strict=True) if returned[k].requires_grad]
    return [output for output, _ in pairs], [said for _, said in pairs]


def _wanting(returned: Sequence[Any]) -> list[int]:
    return [k for k, value in enumerate(returned) if isinstance(value, Variable) and value.requires_grad]


def once_each(trial: TextTrial) -> list[str]:
    """Return a place of each Variable of a case that wants a gradient; one may be given at several places."""
    first: dict[int, str] = {}
    for place, leaf in Inputs.of(trial).leaves.items():
        first.setdefault(id(leaf), place)
    return [*first.values()]


def say(outputs: Sequence[Variable], said: Sequence[Variable | None], **how: Any) -> None:
    """Run a backward pass from the outputs that get feedback."""
    pairs = [(output, what) for output, what in zip(outputs, said, strict=True) if what is not None]
    if pairs:
        backward([output for output, _ in pairs], [what for _, what in pairs], **how)


def heard(leaves: Mapping[str, Variable]) -> dict[str, list[Said]]:
    """Return the contributions to the gradient of each leaf, in their order; none where there is no gradient."""
    return {
        place: [] if leaf.grad is None else [(part.data, part.role, part.source) for part in leaf.grad.parts]
        for place, leaf in leaves.items()
    }


def shown_parts(said: list[Said]) -> str:
    """Return what the parts of a gradient say, for a message."""
    return ", ".join(repr(data) for data, _, _ in said) or "nothing"


def alone(trial: TextTrial, number: int = 0) -> dict[str, list[Said]]:
    """Return what one call in a pass of its own says of its leaves."""
    inputs = Inputs.of(trial)
    outputs = inputs.outputs(trial)
    say(outputs, feedback(trial, outputs, number))
    return heard(inputs.leaves)


def nodes_of(outputs: Sequence[Variable]) -> list[FunctionNode]:
    """Return the nodes of the calls that the outputs depend on."""
    found: dict[Node, None] = {}
    stack = [output.grad_fn for output in outputs]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack += [edge.node for edge in node.next_functions]
    return [node for node in found if isinstance(node, FunctionNode)]


def placed(
    primal: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Variable]]:
    """Yield the Variables among the arguments of a call, and where each is."""
    for name, value in inspect.signature(primal).bind(*args, **kwargs).arguments.items():
        yield from _inside(name, value)


def _inside(place: str, value: Any) -> Iterator[tuple[str, Variable]]:
    if isinstance(value, Variable):
        yield place, value
    elif isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _inside(f"{place}[{key!r}]", item)


def replaced(value: Any, by: Callable[[Variable], Any]) -> Any:
    """Return a value with each Variable in it replaced, containers rebuilt."""
    if isinstance(value, Variable):
        return by(value)
    if type(value) in (list, tuple):
        return type(value)(replaced(item, by) for item in value)
    if type(value) is dict:
        return {key: replaced(item, by) for key, item in value.items()}
    return value


def _remark(data: Any, place: int) -> Any:
    if isinstance(data, list):
        return [_remark(item, place) for item in data]
    return f"Remark on output {place}." if isinstance(data, str) else 1


def _numbered(said: Any, number: int) -> Any:
    if isinstance(said, list):
        return [_numbered(item, number) for item in said]
    return said + (f" (call {number})" if isinstance(said, str) else number) if number else said
