"""The calls of torch that carry no types, typed here once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar, cast

import torch
import wrapt
from torch import Tensor
from torch.autograd import Function, forward_ad

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def allow_in_graph(cls: C) -> C:
    """Let `torch.compile` put `cls.apply` into its graph as one call.

    Dynamo refuses to trace a Function that defines `jvp`, and drops the custom backward of one that does not when
    a compiled region calls `torch.func.grad`; a class that is allowed in the graph keeps both.

    Importing Dynamo takes seconds, so this does not: a class that is made before Dynamo is imported is registered right
    after the import, before anything is compiled.
    """
    # Not `dynamo.allow_in_graph`: if another thread is importing Dynamo, the module has no such attribute yet, and
    # `torch.compiler` waits until it has.
    wrapt.register_post_import_hook(
        lambda dynamo: torch.compiler.allow_in_graph(cls),  # type: ignore[no-untyped-call]
        "torch._dynamo",
    )
    return cls


def outside_graphs(function: F) -> F:
    """Have `torch.compile` break its graph at a function, and compile nothing of it; `fullgraph=True` refuses it.

    As above, importing Dynamo is left to others.
    """
    held = [function]

    def disable(dynamo: object) -> None:
        held[0] = torch.compiler.disable(function, reason="its ranks communicate")  # type: ignore[no-untyped-call]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return held[0](*args, **kwargs)

    wrapt.register_post_import_hook(disable, "torch._dynamo")
    return cast(F, call)


def keep_signature(cls: C) -> C:
    """Keep the signature of `cls.forward` on it.

    torch binds the arguments of each call to it where a Function has `setup_context`, and reading it from the code
    takes a third of the time of a call on a small tensor.
    """
    cls.forward.__signature__ = inspect.signature(cls.forward)  # type: ignore[attr-defined]
    return cls


def apply_function(cls: type[Function], *args: Any) -> Tensor:
    """Call a Function of one output."""
    output: Tensor = cls.apply(*args)  # type: ignore[no-untyped-call]
    return output


def apply_in_place_of(cls: type[Function], *args: Any) -> Any:
    """Call a Function as `Function.apply` does, without binding the arguments to the signature of `forward`.

    They are given by position, none left out. Binding takes a third of the time of a call on a small tensor.

    For a class that is allowed in the graph: Dynamo cannot trace this call, as it would have to in a compiled backward
    pass. `apply_function` is for the others.
    """
    functorch = torch._C._functorch
    if torch._C._are_functorch_transforms_active() or any(
        isinstance(arg, Tensor) and functorch.is_functorch_wrapped_tensor(arg) for arg in args
    ):
        # A transform is at work, or was. From torch 2.14 on `apply` is written in C, and has no `__func__`.
        return Function.__dict__["apply"].__get__(None, cls)(*args)
    return super(Function, cls).apply(*args)  # type: ignore[misc]  # what torch's own ends in


def has_tangent(tensor: Tensor) -> bool:
    """Whether forward mode is at work on a tensor, outside of `torch.vmap` and other transforms too."""
    if forward_ad._current_level < 0 and not torch._C._are_functorch_transforms_active():
        return False  # most calls: neither dual numbers nor a transform
    # Each transform wraps the tensor of the one around it. torch.vmap has no rule to ask what it wraps.
    functorch = torch._C._functorch
    if not functorch.is_functorch_wrapped_tensor(tensor):
        return _is_dual(tensor)
    while functorch.is_functorch_wrapped_tensor(tensor):
        if not functorch.is_batchedtensor(tensor) and _is_dual(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    with torch._C._DisableFuncTorch():  # dual numbers around all transforms
        return _is_dual(tensor)


def _is_dual(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]


def transforms_active() -> bool:
    """Whether a transform of `torch.func` is at work, `torch.vmap` among them; `Function.apply` asks the same."""
    return torch._C._are_functorch_transforms_active()


def queue_callback(callback: Callable[[], None]) -> None:
    """Run a function at the end of the backward pass that is running; not at all if the pass fails."""
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def frees_graph() -> bool:
    """Whether the backward pass that is running frees its graph: it was not called with `retain_graph`."""
    return not torch._C._autograd._get_current_graph_task_keep_graph()


#: The kinds of devices that have autocast. They are asked once: Dynamo of torch 2.11 traces no question of it.
_AUTOCASTS = frozenset(filter(torch.amp.is_autocast_available, ("cpu", "cuda", "hpu", "mps", "mtia", "xla", "xpu")))


def without_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """Return the context in which a product with a tensor keeps its dtype; autocast would copy all of it."""
    device = tensor.device.type
    is_at_work = device in _AUTOCASTS and torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if is_at_work else nullcontext()
