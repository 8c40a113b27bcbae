"""Find what cuts the graph of a call: leave out each `detach`, `.data` or `no_grad`, and see if a gradient arrives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradspec._one_line import listed
from gradspec._place import calling_line
from gradspec.law import Reason, Trial
from gradspec.laws.tensor.support._call import Inputs, gradients, like, outputs
from gradspec.laws.tensor.support._graph import nodes_behind
from gradspec.laws.tensor.support._reference import declared_zero, is_audited, is_stand_in
from gradspec.laws.tensor.support._slope import moves_smoothly

DETACH = (torch.Tensor.detach, torch.detach)
DATA = (torch.Tensor.data.__get__,)  # type: ignore[attr-defined]  # a property in C
NO_GRAD = (torch._C._set_grad_enabled,)
#: What a call may be made without, by what one reads in it.
_CUTS: dict[str, tuple[Any, ...]] = {
    "detach()": DETACH,
    ".data": DATA,
    "no_grad()": NO_GRAD,
}
#: All of it.
EVERY = (*DETACH, *DATA, *NO_GRAD)
#: A number of Python that is made of a tensor: where the tensor stands for it, the graph goes on.
_ITEM = ("item()", (torch.Tensor.item,))


class Without(TorchFunctionMode):
    """Calls without what would cut their graph: a tensor stays as it is, and gradients stay on."""

    def __init__(self, left_out: tuple[Any, ...]) -> None:
        super().__init__()
        self._left_out = left_out
        #: The first line of the code under test that would have cut it.
        self.line = ""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in self._left_out:
            return func(*args, **(kwargs or {}))
        self.line = self.line or calling_line()
        return uncut(args[0])


def uncut(value: Any) -> Tensor | None:
    """Return a tensor as it is after a cut that was left out: another one, as with the cut; None for what is no tensor.

    A hook that differentiates from the tensor of a cut on would call itself if it were the same.
    """
    if not isinstance(value, Tensor):
        return None
    return value.view_as(value) if value.layout is torch.strided else value


def is_stopped(
    trial: Trial, inputs: Inputs, name: str, gradient: Tensor, without: TorchFunctionMode | None = None
) -> bool:
    """Whether the graph of a call is cut by name on one of several ways to an argument: another gradient is left.

    Args:
        trial: the call.
        inputs: its arguments.
        name: the argument.
        gradient: that of the call.
        without: leaves out what cuts a graph; all of it by default.
    """
    try:
        with without or Without(EVERY):
            found = gradient_of(trial, inputs, name)
    except Exception:
        return False
    return found is not None and found.shape == gradient.shape and not torch.allclose(found, gradient)


def is_cut_by_name(function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether a call whose outputs have no graph has one once everything that cuts it by name is left out."""
    try:
        with Without(EVERY):
            return has_graph(function, inputs)
    except Exception:
        return True  # what is left of it does not run: nothing is shown


def unseen_by_autograd(trial: Trial) -> str:
    """Return in words that what a gradient is held against has a derivative, and no graph: a fault of the spec.

    One that is cut by name is cut on purpose, and with it in place of the cut a graph would be there.
    """
    spec, inputs = trial.spec, Inputs.of(trial)
    if spec.gradient is not None or is_stand_in(spec.surrogate):
        return ""
    if has_graph(spec.surrogate, inputs):
        return ""
    with suppress(Exception), Without(EVERY):  # NumPy takes no tensor with a graph
        if has_graph(spec.surrogate, inputs):
            return ""
    meant = declared_zero(spec) if is_audited(spec) else spec.zero_gradient
    names = (name for name in inputs.wrt if name not in meant)
    if not (moving := [name for name in names if moves_smoothly(spec.surrogate, inputs, name, trial.seed)]):
        return ""
    return (
        f"what the gradient is held against moves with {listed(moving)}, and autograd sees no derivative of it, as of "
        "a search or of NumPy: compute it in differentiable torch, or give a surrogate or a gradient"
    )


def has_graph(function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether a gradient flows through a function at all."""
    y = outputs(function(*inputs.args(inputs.leaves())))
    return any(isinstance(t, Tensor) and t.requires_grad for t in y)


def gradient_of(trial: Trial, inputs: Inputs, name: str) -> Tensor | None:
    """Return the gradient of an argument; None where no graph reaches it."""
    leaves = inputs.leaves()
    y = outputs(trial.spec.function(*inputs.args(leaves)))
    for node in nodes_behind(y):
        node.register_prehook(_Once())
    return gradients(y, leaves, like(y, trial.seed))[name]


class _Once:
    """Lets a node run once: without its cut, a backward that differentiates within may call itself without end."""

    has_run = False

    def __call__(self, _: object) -> None:
        if self.has_run:
            raise RuntimeError("backward calls itself")
        self.has_run = True


def cut_by(trial: Trial, inputs: Inputs, name: str) -> Reason | None:
    """Return what keeps the gradient from an argument, "detach()" or several of these; None if nothing shows it."""
    for what, funcs in (*_CUTS.items(), _ITEM, (" and ".join(_CUTS), EVERY)):
        try:
            with (without := Without(funcs)):
                found = gradient_of(trial, inputs, name)
        except Exception:  # what is left of the function may not run
            continue
        if found is not None:
            at = f" ({without.line})" if without.line else ""
            said = f"the graph is cut by {what}{at}: without it a gradient arrives"
            return Reason(kind="cut", words=said, evidence={"by": what})
    return None
