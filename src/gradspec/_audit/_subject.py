"""The subject of an audit: a Function, function, module instance or operator, and its argument names."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef
from torch.utils._pytree import tree_leaves

from gradspec._audit._module_call import with_state
from gradspec._audit._running import running_its_own
from gradspec.spec import Accuracy, Case, Supports
from gradspec.spec._schema import functional, overload_of, signature_of
from gradspec.spec._sheet import forward_signature

_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, _NAMED)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The callable under audit, and how it is called."""

    name: str
    call: Callable[..., Any]
    #: The Function behind the call, where it is one's `apply`.
    implementation: type | None
    signature: inspect.Signature
    #: The overload, where an operator of torch.library is called; `call` is then its form without effects.
    operator: Any = None
    #: The module that registers the operator, where the path of an audit names it: of one in C++ nothing else does.
    home: str = ""
    #: The arguments that are parameters and buffers of a module, and what the module calls them: "0.weight".
    state: Mapping[str, str] = field(default_factory=dict)
    #: Those that get no gradient: its buffers, and what is frozen.
    fixed: frozenset[str] = frozenset()
    #: Those of these that belong to a module in training, which may move them: the statistics of BatchNorm.
    moving: frozenset[str] = frozenset()
    #: The tensors that are arguments, and that an object which is one holds too, as a call taken apart names them.
    own: frozenset[str] = frozenset()
    #: The module that is called, and those inside it.
    layers: tuple[torch.nn.Module, ...] = ()
    #: The tensors that are marked as trained in a call, by the name of the case.
    marked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: The tensors whose gradient is declared to be zero.
    zero: frozenset[str] = frozenset()
    #: The arguments of which each call gets a copy, since it writes to them, and autograd knows.
    written: tuple[str, ...] = ()
    #: What forward should compute, and the map whose derivative backward should apply; None where nobody has said so.
    primal: Callable[..., Any] | None = None
    surrogate: Callable[..., Any] | None = None
    #: How accurate its results are, if more than rounding makes them differ.
    accuracy: Accuracy = Accuracy()  # noqa: RUF009  # frozen
    #: What is promised: a refusal of anything else breaks no promise.
    supports: Supports = field(default_factory=Supports.eager)

    @property
    def has_reference(self) -> bool:
        """Whether somebody has said what it should compute, or what its gradient should be."""
        return self.primal is not None or self.surrogate is not None

    def parameter_of(self, leaf: str) -> str:
        """Return the argument that a tensor belongs to: `xs` of `xs_0`."""
        fitting = [name for name in self.signature.parameters if leaf == name or leaf.startswith(f"{name}_")]
        return max(fitting, key=len, default=leaf)

    @property
    def module(self) -> str:
        """The module in which it was defined."""
        return self.home or getattr(self.implementation or self.call, "__module__", None) or "__main__"


def has_own_backward(cls: Any) -> bool:
    """Whether a Function has a backward that torch calls."""
    own = torch.autograd.Function
    return cls.backward is not own.backward or cls.vjp is not own.vjp


def home_in(path: str) -> str:
    """Return the imported module that the path of an operator names: "my_ops" of "my_ops.py:mylib::scale".

    Args:
        path: as the command line takes it; without a module, that of the name of the namespace is meant.
    """
    before, colons, _ = path.rpartition("::")
    where, _, namespace = before.rpartition(":")
    if not colons:
        return ""
    if not where.endswith(".py"):
        return (where or namespace) if (where or namespace) in sys.modules else ""
    file = str(Path(where).resolve())
    return next((name for name, module in [*sys.modules.items()] if getattr(module, "__file__", None) == file), "")


def subject_of(function: Any, cases: tuple[Case, ...], name: str = "") -> tuple[Subject, tuple[Case, ...]]:
    """Return what an audit of a function calls, and the calls: those of a module with its parameters and buffers.

    Raises:
        TypeError: it cannot be called, or it must be given otherwise.
        ValueError: a case does not fit its arguments.
    """
    operator = _operator(function)
    call, implementation = (functional(operator), None) if operator is not None else _called(function, name)
    if operator is not None and isinstance(function, CustomOpDef):  # which has no name of a function
        name = name or operator._schema.name
    name = name or getattr(implementation or function, "__name__", type(function).__name__)
    signature = signature_of(operator._schema) if operator is not None else _signature(call, implementation, cases)
    if inspect.isfunction(function) and next(iter(signature.parameters), "") == "ctx":
        raise TypeError(f"{name}{signature} is a part of a Function: give the Function itself, or its apply")
    for case in cases:
        try:
            signature.bind(*case.args, **case.kwargs)
        except TypeError as error:
            raise ValueError(f"the case {case.name!r} does not fit {name}{signature}: {error}") from None
        if any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in tree_leaves((case.args, dict(case.kwargs)))):
            raise ValueError(f"the case {case.name!r} has a tensor on the device meta, which holds no numbers")
    subject = Subject(name=name, call=call, implementation=implementation, signature=signature, operator=operator)
    if isinstance(call, torch.nn.Module):
        return with_state(subject, call, cases)
    call = call if implementation is None else _as_given(call, signature, cases)
    call, cases, own = running_its_own(call, signature, cases)
    return replace(subject, call=call, own=own), cases


def _called(function: Any, name: str) -> tuple[Callable[..., Any], type | None]:
    if isinstance(function, type) and issubclass(function, torch.autograd.Function):
        return function.apply, function
    if isinstance(function, type) and issubclass(function, torch.nn.Module):
        given = name or function.__name__
        raise TypeError(
            f"{given} is a class of modules: audit an instance, as `layer = {function.__name__}(...)` and then `layer`"
        )
    if isinstance(function, type) and not issubclass(function, torch.Tensor):
        given = name or function.__name__
        raise TypeError(f"{given} is a class, and neither a torch.autograd.Function nor an object that is called")
    if isinstance(function, torch.autograd.Function):
        cls = type(function).__name__
        raise TypeError(
            f"this is an instance of {cls}, which torch calls as a class: give {cls} itself, or {cls}.apply"
        )
    if not callable(function):
        raise TypeError(f"an audit takes a Function or a callable, got {function!r}")
    owner = getattr(function, "__self__", None)
    is_apply = isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
    return function, owner if is_apply else None


def _as_given(call: Callable[..., Any], signature: inspect.Signature, cases: Sequence[Case]) -> Callable[..., Any]:
    """Return the call of a Function that hands on no more than the cases give.

    Its backward may return a gradient for each of these alone: what is left to its default is left out.
    """
    count = max(len(case.args) for case in cases)
    named = {name for case in cases for name in case.kwargs}
    defaults = {name: one.default for name, one in signature.parameters.items() if one.default is not one.empty}
    order = list(signature.parameters)
    if not (left := [name for name in defaults if order.index(name) >= count and name not in named]):
        return call

    def as_given(*args: Any, **kwargs: Any) -> Any:
        while len(args) > count and order[len(args) - 1] in left and _is(args[-1], defaults[order[len(args) - 1]]):
            args = args[:-1]
        kept = {name: value for name, value in kwargs.items() if name not in left or not _is(value, defaults[name])}
        return call(*args, **kept)

    as_given.__module__ = getattr(call, "__module__", None) or "__main__"
    return as_given


def _is(value: Any, default: Any) -> bool:
    return value is default or (
        type(value) is type(default) and not isinstance(value, torch.Tensor) and value == default
    )


def _operator(function: Any) -> Any:
    """Return the overload of an operator of torch.library; None for anything else.

    Raises:
        TypeError: it has several overloads, and none is named.
    """
    if not isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket | CustomOpDef):
        return None
    try:
        return overload_of(function)
    except ValueError as error:
        raise TypeError(str(error)) from None


def _signature(call: Callable[..., Any], implementation: type | None, cases: Sequence[Case]) -> inspect.Signature:
    """Return the arguments of a call by name: those of forward without ctx, of the function, or as many as are given.

    Annotations are left out; in place of `**kwargs` are the names that the cases give.
    """
    try:
        found = _declared(call, implementation)
    except (TypeError, ValueError):  # a function in C has no signature to read
        found = []
    count = max(len(case.args) for case in cases)
    if not found or (implementation is None and _hides_names(found)):
        found = [inspect.Parameter(f"x{k}", _NAMED) for k in range(1, count + 1)]
    kept = [
        parameter.replace(
            kind=_NAMED if parameter.kind in _BY_POSITION else parameter.kind, annotation=inspect.Parameter.empty
        )
        for parameter in found
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    known = {parameter.name for parameter in kept}
    if len(kept) < len(found) or not known:
        extra = dict.fromkeys(name for case in cases for name in case.kwargs if name not in known)
        kept += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in extra]
    return inspect.Signature(kept)


def _hides_names(found: Sequence[inspect.Parameter]) -> bool:
    """Whether a signature says nothing: `(*args, **kwargs)`, as of a decorator."""
    return [parameter.kind for parameter in found] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]


def _declared(call: Callable[..., Any], implementation: type | None) -> list[inspect.Parameter]:
    if implementation is not None:
        return list(forward_signature(implementation).parameters.values())
    read = call.forward if isinstance(call, torch.nn.Module) else call
    return list(inspect.signature(read).parameters.values())
