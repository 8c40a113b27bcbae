"""A module as a function of its parameters and buffers too, which each call starts from unchanged."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

from gradspec.spec import Case

if TYPE_CHECKING:
    from gradspec._audit._subject import Subject


def with_state(subject: Subject, module: torch.nn.Module, cases: tuple[Case, ...]) -> tuple[Subject, tuple[Case, ...]]:
    """Return a module as a function of its parameters and buffers too: a gradient flows to these, calls are alike.

    Raises:
        ValueError: a parameter has no shape yet.
    """
    kept = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    if lazy := next((full for full, value in kept.items() if is_lazy(value)), None):
        raise ValueError(
            f"{subject.name} has the parameter {lazy}, which has no shape yet: call it once, then audit it"
        )
    names = _arguments_for(kept, subject.signature)

    fixed = frozenset(name for name, full in names.items() if not kept[full].requires_grad)
    moving = frozenset(n for n in fixed if module.get_submodule(names[n].rpartition(".")[0]).training)
    backward = _InBackward(module)

    def functional(*args: Any, **kwargs: Any) -> Any:
        state = {full: kwargs.pop(name) for name, full in names.items()}
        # In a backward pass a checkpoint calls it again. What is compiled cannot ask, and has changed nothing; where a
        # buffer moves it asks, and is not compiled: torch 2.13 gives another gradient once a copy of one has moved.
        if (moving or not torch.compiler.is_compiling()) and torch._C._current_graph_task_id() == -1:
            backward.restore()  # a pass that raised has left it as it was
        try:
            return backward.with_state(torch.func.functional_call(module, state, args, kwargs), state)
        finally:
            _own_weights(module)

    functional.__module__ = type(module).__module__
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    dtype = _widest(cases, kept.values())
    state = {name: _in_dtype(kept[full].detach(), dtype) for name, full in names.items()}
    return (
        replace(
            subject,
            call=functional,
            signature=inspect.Signature([*subject.signature.parameters.values(), *extra]),
            state=names,
            fixed=fixed,
            layers=tuple(module.modules()),
            moving=moving,
        ),
        tuple(replace(case, kwargs={**case.kwargs, **state}) for case in cases),
    )


def beside_state(subject: Subject, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that finds a state, given first by name, in the module that is judged: it may read a parameter.

    A module that is built alike, with the same numbers under the same names, finds it in itself.
    """
    module = subject.layers[0]
    of: torch.nn.Module = _Beside(module, call)
    prefix = "module."
    if isinstance(call, torch.nn.Module):
        of, prefix = (call, "") if _are_alike(call, module) else (_Beside(module, in_double(call)), prefix)

    def called(state: Mapping[str, torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        full = {f"{prefix}{subject.state[name]}": value for name, value in state.items()}
        try:
            return torch.func.functional_call(of, full, args, kwargs)
        finally:
            _own_weights(module)

    return called


def _are_alike(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    mine, theirs = ({**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (one, other))
    return mine.keys() == theirs.keys() and all(_is_same(mine[name], theirs[name]) for name in mine)


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.dtype, one.device) == (other.dtype, other.device) and torch.equal(one, other)


def in_double(module: torch.nn.Module) -> Callable[..., Any]:
    """Return the call of a module with weights of its own, which are in double precision where an argument is."""

    def called(*args: Any, **kwargs: Any) -> Any:
        own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        narrow = {name: value.double() for name, value in own.items() if value.dtype is torch.float32}
        if not narrow or torch.float64 not in _floating(tree_leaves((args, kwargs))):
            return module(*args, **kwargs)
        return torch.func.functional_call(module, narrow, args, kwargs)

    return called


class _Beside(torch.nn.Module):
    """Calls something beside a module."""

    def __init__(self, module: torch.nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.train(module.training)
        self.module = module
        self.called = (call,)  # in a tuple: a module is no part of this one

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.called[0](*args, **kwargs)


def _own_weights(module: torch.nn.Module) -> None:
    """Let each recurrent module see its own parameters: it has a list of them, and looks into it at its next call."""
    for child in module.modules():
        if isinstance(child, torch.nn.RNNBase):
            child._update_flat_weights()


class _InBackward:
    """Puts the state of a call into a module for its backward pass too, which may run a block of it again."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._kept: list[tuple[dict[str, Any], str, Any]] = []

    def with_state(self, y: Any, state: Mapping[str, torch.Tensor]) -> Any:
        """Return what a call has returned, with the state in place while its graph is differentiated."""
        if torch.compiler.is_compiling() or torch._C._functorch.maybe_current_level() is not None:
            return y

        def enter(cotangents: tuple[torch.Tensor, ...]) -> None:
            if not self._kept and not torch.compiler.is_compiling():  # compiled, a backward calls no checkpoint again
                self._enter(state)
                torch.autograd.Variable._execution_engine.queue_callback(self.restore)

        for node in {t.grad_fn for t in tree_leaves(y) if isinstance(t, torch.Tensor) and t.grad_fn is not None}:
            node.register_prehook(enter)
        return y

    def restore(self) -> None:
        """Give the module its own state again."""
        for table, name, own in self._kept:
            table[name] = own
        self._kept.clear()

    def _enter(self, state: Mapping[str, torch.Tensor]) -> None:
        for full, value in state.items():
            home, _, name = full.rpartition(".")
            owner = self._module.get_submodule(home)
            table: dict[str, Any] = owner._parameters if name in owner._parameters else owner._buffers
            self._kept.append((table, name, table[name]))
            table[name] = value


def _arguments_for(state: Iterable[str], signature: inspect.Signature) -> dict[str, str]:
    """Return an argument for each parameter and buffer: "fc_weight" for "fc.weight", "_0_weight" for "0.weight"."""
    found: dict[str, str] = {}
    for full in state:
        name = full.replace(".", "_")
        if not name.isidentifier() or keyword.iskeyword(name):
            name = f"_{name}"
        while name in found or name in signature.parameters:  # beside "a.b" there may be "a_b"
            name += "_"
        found[name] = full
    return found


def _widest(cases: Sequence[Case], own: Iterable[torch.Tensor]) -> torch.dtype:
    """Return the floating dtype that holds every given tensor: parameters of a module take part in its precision.

    Where no call gives one, as to an embedding, it holds those of the module itself, and is no half type.
    """
    given = _floating(value for case in cases for value in (*case.args, *case.kwargs.values()))
    return max(given or _floating(own) | {torch.get_default_dtype()}, key=lambda dtype: torch.finfo(dtype).bits)


def _floating(values: Iterable[Any]) -> set[torch.dtype]:
    return {value.dtype for value in values if isinstance(value, torch.Tensor) and value.is_floating_point()}


def _in_dtype(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return value.to(dtype) if value.is_floating_point() else value
