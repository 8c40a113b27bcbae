"""Where a gradient is lost that is None: before the function, within it, or in its backward."""

from __future__ import annotations

from torch import Tensor

from gradspec.explain._cut import cut_by
from gradspec.explain._misplaced import misplaced
from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, outputs
from gradspec.laws.tensor.support._diagnosis import quietly
from gradspec.laws.tensor.support._graph import classes_behind, leaves_behind

#: What is said of an operator whose graph has no backward of Python.
UNREGISTERED = "no gradient is registered for the operator: torch.library.register_autograd, or an Autograd kernel"
#: What is said of a forward whose graph no `detach()`, `.data` or `no_grad()` cuts.
NO_GRAPH = (
    "forward returns a tensor without a graph: look for numpy, or a list or tuple, into which `apply` does not look"
)
#: What is said of an operator, whose arguments torch looks for in lists and tuples too.
NO_GRAPH_OF_OPERATOR = (
    "the operator returns a tensor without a graph: no gradient is registered for it, or its Autograd kernel makes none"
)


def why_none(trial: Trial, inputs: Inputs, name: str) -> Reason:
    """Return why the gradient of an argument is None: what cuts the graph, left out, or else the graph itself."""
    cut: Reason | None = quietly(lambda: cut_by(trial, inputs, name))
    if cut is not None:
        return cut
    leaves = inputs.leaves()
    y = [t for t in outputs(trial.spec.function(*inputs.args(leaves))) if isinstance(t, Tensor)]
    if not any(t.requires_grad for t in y):
        is_operator = getattr(trial.spec, "overload", None) is not None
        return Reason(kind="cut", words=NO_GRAPH_OF_OPERATOR if is_operator else NO_GRAPH)
    if any(leaf is leaves[name] for leaf in leaves_behind(tuple(y))):
        if (elsewhere := misplaced(trial, inputs, name)) is not None:
            return elsewhere
        if not classes_behind(tuple(y)) and getattr(trial.spec, "overload", None) is not None:
            return Reason(kind="none", words=UNREGISTERED, evidence={"argument": name})
        return Reason(kind="none", words=f"backward returns None for `{name}`", evidence={"argument": name})
    said = f"no graph leads to `{name}`: look for detach(), or for a list or tuple, into which `apply` does not look"
    return Reason(kind="no graph", words=said, evidence={"argument": name})
