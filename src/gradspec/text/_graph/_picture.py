"""Pictures of a graph: a tree of lines, and a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.text._graph._context import FunctionNode
from gradspec.text._graph._node import AccumulateGrad, Node
from gradspec.text._graph._variable import Variable


def tree(variable: Variable, *, width: int | None = 60) -> str:
    """Return the graph that a Variable stands on as lines: each call with what it was made of indented below it.

    A call shows its name and the roles of its outputs; a leaf its role, its data and its feedback, as does an inner
    Variable that retains its gradient. What stands in two places is shown once.

    Args:
        variable: Where to begin.
        width: Data and feedback are cut to so many characters; None shows them whole.

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
    lines = []
    for node, depth, seen in _walk(variable):
        text = f"{_title(node)} (see above)" if seen else "; ".join([_title(node), *_details(node, width)])
        if isinstance(node, AccumulateGrad) and not seen:
            text = f"{_title(node)} {_said(node.variable, width)}"
        lines.append("  " * depth + text)
    return "\n".join(lines)


def mermaid(variable: Variable, *, width: int | None = 60) -> str:
    """Return the graph that a Variable stands on as a Mermaid flowchart, from the leaves down to the Variable.

    Every character that Mermaid or HTML reads in some way is escaped.

    Args:
        variable: Where to begin.
        width: Data and feedback are cut to so many characters; None shows them whole.

    Example:
        >>> from gradspec.text import Variable
        >>> print(mermaid(Variable('say "hi"', role="prompt", requires_grad=True) + "!"))
        flowchart TD
          n0["AddBackward: prompt"]
          n1("prompt #39;say #34;hi#34;#39;")
          n1 --> n0
    """
    names: dict[Node, str] = {}
    boxes, arrows = [], []
    for node, _, seen in _walk(variable):
        if seen:
            continue
        name = names.setdefault(node, f"n{len(names)}")
        if isinstance(node, AccumulateGrad):
            boxes.append(f'  {name}("{_escaped(f"{_title(node)} {_said(node.variable, width)}")}")')
        else:
            boxes.append(f'  {name}["{_escaped("; ".join([_title(node), *_details(node, width)]))}"]')
    for node, name in names.items():
        arrows += [f"  {names[target]} --> {name}" for target, _ in node._edges if target is not None]
    return "\n".join(["flowchart TD", *boxes, *arrows])


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


def _details(node: Node, width: int | None) -> list[str]:
    kept = (retained() for retained in (node._retained or {}).values())
    return [_said(variable, width) for variable in kept if variable is not None]


def _said(variable: Variable, width: int | None) -> str:
    grad = "" if variable._grad is None else f" <- {_cut(repr(variable._grad.data), width)}"
    return _cut(repr(variable.data), width) + grad


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


def _escaped(text: str) -> str:
    # Mermaid's own entities: a number between # and ;. Letters, digits and the plainest signs stay readable.
    return "".join(c if c.isalnum() or c in " .,:!?()+-=" else f"#{ord(c)};" for c in text)
