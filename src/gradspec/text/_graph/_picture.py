"""Pictures of a graph: a tree of lines, and a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gradspec.text._costs import check_prices
from gradspec.text._engine._node import AccumulateGrad, Node
from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._variable import Variable


@dataclass(frozen=True, kw_only=True)
class Box:
    """A call or a leaf, as a picture shows it."""

    name: str
    label: str
    is_leaf: bool


#: For each model the price of a million tokens, of messages and of replies.
Prices: TypeAlias = Mapping[str, tuple[float, float]]


def graph(
    variable: Variable, *, width: int | None = 60, prices: Prices | None = None
) -> tuple[list[Box], list[tuple[str, str]]]:
    """Return the boxes of the graph that a Variable depends on, and the arrows between them, leaves first, by name.

    Args:
        variable: Where to begin.
        width: Data and feedback are cut to so many characters; None shows them whole.
        prices: For each model the price of a million tokens, of messages and of replies; costs are shown in money too.
    """
    _check(variable, width, prices)
    names: dict[Node, str] = {}
    boxes = []
    for node, _, seen in _walk(variable):
        if seen:
            continue
        names[node] = f"n{len(names)}"
        boxes.append(Box(name=names[node], label=_label(node, width, prices), is_leaf=isinstance(node, AccumulateGrad)))
    arrows = [(names[target], name) for node, name in names.items() for target, _ in node._edges if target is not None]
    return boxes, arrows


def tree(variable: Variable, *, width: int | None = 60, prices: Prices | None = None) -> str:
    """Return the graph that a Variable depends on as lines: each call with what it was made of indented below it.

    A call shows its name, the roles of its outputs, and what it asked of models; a leaf its role, its data and its
    feedback, as does an inner Variable that retains its gradient. What is in two places is shown once.

    Args:
        variable: Where to begin.
        width: Data and feedback are cut to so many characters; None shows them whole.
        prices: For each model the price of a million tokens, of messages and of replies; costs are shown in money too.

    Example:
        >>> from gradspec.text import Variable
        >>> prompt = Variable("Answer.", role="prompt", requires_grad=True)
        >>> top = prompt + prompt
        >>> top.backward(Variable("too short"))
        >>> print(tree(top))
        AddBackward: prompt
          prompt 'Answer.' <- 'too short'
          prompt (see above)
    """
    _check(variable, width, prices)
    lines = []
    for node, depth, seen in _walk(variable):
        text = f"{_title(node)} (see above)" if seen else _label(node, width, prices)
        lines.append("  " * depth + text)
    return "\n".join(lines)


def mermaid(variable: Variable, *, width: int | None = 60, prices: Prices | None = None) -> str:
    """Return the graph that a Variable depends on as a Mermaid flowchart, from the leaves down to the Variable.

    Every character that Mermaid or HTML reads in some way is escaped.

    Args:
        variable: Where to begin.
        width: Data and feedback are cut to so many characters; None shows them whole.
        prices: For each model the price of a million tokens, of messages and of replies; costs are shown in money too.

    Example:
        >>> from gradspec.text import Variable
        >>> print(mermaid(Variable('say "hi"', role="prompt", requires_grad=True) + "!"))
        flowchart TD
          n0["AddBackward: prompt"]
          n1("prompt #39;say #34;hi#34;#39;")
          n1 --> n0
    """
    boxes, arrows = graph(variable, width=width, prices=prices)
    signs = {True: '("{}")', False: '["{}"]'}
    drawn = [f"  {box.name}{signs[box.is_leaf].format(_escaped(box.label))}" for box in boxes]
    return "\n".join(["flowchart TD", *drawn, *(f"  {source} --> {target}" for source, target in arrows)])


def _check(variable: object, width: object, prices: Prices | None) -> None:
    if not isinstance(variable, Variable):
        raise TypeError(f"only a Variable has a graph, not {variable!r}")
    if width is not None and (not isinstance(width, int) or width < 1):
        raise ValueError(f"width counts characters, 1 or more, or is None for all of them; not {width!r}")
    if prices is not None:
        check_prices(prices)


def _walk(variable: Variable) -> Iterator[tuple[Node, int, bool]]:
    """Yield each node with its depth, and whether it was there before; nothing recurses."""
    if variable._grad_fn is None:
        yield AccumulateGrad(variable), 0, False
        return
    stack: list[tuple[Node, int]] = [(variable._grad_fn, 0)]
    met: set[Node] = set()
    while stack:
        node, depth = stack.pop()
        seen = node in met
        yield node, depth, seen
        if not seen:
            met.add(node)
            stack += [(target, depth + 1) for target, _ in reversed(node._edges) if target is not None]


def _title(node: Node) -> str:
    if isinstance(node, AccumulateGrad):
        return node.variable.role or "leaf"
    roles = ", ".join(role for role in node._origin[1] if role) if isinstance(node, FunctionNode) else ""
    return f"{node.name()}: {roles}" if roles else node.name()


def _label(node: Node, width: int | None, prices: Prices | None) -> str:
    if isinstance(node, AccumulateGrad):
        return f"{_title(node)} {_said(node.variable, width)}"
    return "; ".join([_title(node), *_details(node, width), *_costs(node, prices)])


def _details(node: Node, width: int | None) -> list[str]:
    kept = (retained() for retained in (node._retained or {}).values())
    return [_said(variable, width) for variable in kept if variable is not None]


def _costs(node: Node, prices: Prices | None) -> list[str]:
    if not isinstance(node, FunctionNode) or node._costs is None:
        return []
    ways = {"asked": node.forward_cost(prices), "back": node.backward_cost(prices)}
    return [f"{way} {cost}" for way, cost in ways.items() if cost.calls]


def _said(variable: Variable, width: int | None) -> str:
    grad = "" if variable._grad is None else f" <- {_cut(repr(variable._grad.data), width)}"
    return _cut(repr(variable.data), width) + grad


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


def _escaped(text: str) -> str:
    # Mermaid's own entities: a number between # and ;. Letters, digits and the plainest signs stay readable.
    return "".join(c if c.isalnum() or c in " .,:!?()+-=" else f"#{ord(c)};" for c in text)
