"""Where a gradient is lost that is None: before the function, within it, or in its backward."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, outputs


def why_none(trial: Trial, inputs: Inputs, name: str) -> str:
    """Return why the gradient of an argument is None, from the graph of a call."""
    leaves = inputs.leaves()
    y = [t for t in outputs(trial.spec.function(*inputs.args(leaves))) if isinstance(t, Tensor)]
    if not any(t.requires_grad for t in y):
        return "forward returns a tensor without a graph: look for .data, detach() or numpy"
    if _reaches([t.grad_fn for t in y if t.grad_fn is not None], leaves[name]):
        return f"backward returns None for `{name}`"
    return f"no graph leads to `{name}`: look for detach(), or for a list or tuple, into which `apply` does not look"


def _reaches(nodes: list[Any], leaf: Tensor) -> bool:
    seen: set[Any] = set()
    while nodes:
        node = nodes.pop()
        if getattr(node, "variable", None) is leaf:
            return True
        if node not in seen:
            seen.add(node)
            nodes += [parent for parent, _ in node.next_functions if parent is not None]
    return False
