"""Check the arguments of a backward pass: where it begins, and where it may go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradspec.text._data import fits, in_words
from gradspec.text._engine._node import Node, Seed, accumulator
from gradspec.text._engine._pass import Pass
from gradspec.text._graph._gradients import Feedback
from gradspec.text._graph._merge import kind_of
from gradspec.text._graph._variable import Variable

Variables = Variable | Iterable[Variable]
Gradients = Variable | None | Iterable[Variable | None]

CREATE_GRAPH = (
    "create_graph=True is not implemented: feedback on feedback is not tracked. Call backward without it, and apply "
    "Functions to the gradients yourself."
)


def begin(outputs: Variables, gradients: Gradients, create_graph: bool, targets: Sequence[Variable] | None) -> Pass:
    """Return the pass that begins with some outputs, and ends at the targets, or else at every leaf."""
    if create_graph:
        raise NotImplementedError(CREATE_GRAPH)
    roots = listed(outputs, "variables")
    seeds = _seeds(roots, gradients)
    wanted = None if targets is None else {place_of(target) for target in targets}
    return Pass(seeds, Feedback(), wanted)


def place_of(variable: Variable) -> tuple[Node, int]:
    """Return where the gradient of a Variable goes."""
    return (variable._grad_fn or accumulator(variable), variable._output_nr)


def targets_of(inputs: Variables | None) -> list[Variable] | None:
    """Return the Variables to accumulate in; None is every leaf."""
    if inputs is None:
        return None
    found = listed(inputs, "inputs")
    if not found:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for place, variable in enumerate(found):
        if not variable._requires_grad:
            raise RuntimeError(f"element {place} of inputs does not require grad: {variable!r}")
    return found


def _seeds(roots: list[Variable], gradients: Gradients) -> list[Seed]:
    if isinstance(gradients, str | int | float):
        raise TypeError(f"a gradient is a Variable, not {_quoted(gradients)}; write Variable({_quoted(gradients)})")
    given = (
        [gradients] * len(roots)
        if gradients is None
        else [gradients]
        if isinstance(gradients, Variable)
        else [*gradients]
    )
    if len(given) != len(roots):
        raise RuntimeError(f"got {len(roots)} variables and {len(given)} gradients")
    seeds = []
    for place, (root, gradient) in enumerate(zip(roots, given, strict=True)):
        if not root._requires_grad:
            raise RuntimeError(f"element {place} of variables does not require grad and does not have a grad_fn")
        if gradient is None:
            gradient = _implicit(root)
        elif not isinstance(gradient, Variable):
            raise TypeError(f"gradients can be either Variables or None, but got {type(gradient).__name__}")
        elif not fits(got := kind_of(gradient), of := kind_of(root)):
            raise RuntimeError(f"element {place} of gradients is {in_words(got)}; the Variable holds {in_words(of)}")
        if gradient._origin is None:
            gradient._origin = ("", ())
        seeds.append((place_of(root), gradient))
    return seeds


def _quoted(value: str | float) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _implicit(root: Variable) -> Variable:
    element, length = kind_of(root)
    if length is not None:
        raise RuntimeError("grad can be implicitly created only for scalar outputs; give a gradient for the list")
    return Variable("" if element is str else 1, role="seed")


def listed(variables: Variables, name: str) -> list[Variable]:
    """Return one Variable or several as a list."""
    if not isinstance(variables, Iterable | Variable):
        raise TypeError(f"{name} is a Variable or a list of them, not {variables!r}")
    found = [variables] if isinstance(variables, Variable) else [*variables]
    for variable in found:
        if not isinstance(variable, Variable):
            raise TypeError(f"{name} holds a {type(variable).__name__}; it takes Variables")
    return found
