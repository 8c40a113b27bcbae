"""One kernel under test: how it is called, the map that it computes, inputs, and what it declares about accuracy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

HALVES_AND_SINGLE = (torch.bfloat16, torch.float16, torch.float32)

#: Distributions of inputs. Each kernel says by `large` how far "large" goes.
SCALES = ("plain", "large", "small", "needle", "offset")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel, the map that it computes, and inputs for both."""

    name: str
    #: The distribution on PyPI that has the kernel; empty for ours.
    package: str = ""
    #: The arguments' names, in order.
    arguments: tuple[str, ...]
    #: The arguments that have a gradient.
    wrt: tuple[str, ...]
    #: The kernel; autograd differentiates it.
    call: Callable[..., Any]
    #: The same map in plain torch; it takes float64.
    reference: Callable[..., Any]
    #: (shape, dtype, scale, generator) -> the arguments.
    make: Callable[[tuple[int, ...], torch.dtype, str, torch.Generator], tuple[Any, ...]]
    #: Sizes that `make` understands. The first is friendly: whole tiles.
    shapes: tuple[tuple[int, ...], ...]
    #: The kernel's block size, if inputs can cross it.
    tile: int = 16
    dtypes: tuple[torch.dtype, ...] = HALVES_AND_SINGLE
    scales: tuple[str, ...] = SCALES
    #: The dtype in which the kernel accumulates; None is the dtype of its inputs.
    accumulate: torch.dtype | None = torch.float32
    #: Places of the reference (see `stored`) that the kernel rounds to the dtype of its inputs;
    #: "dP" is the gradient at the place P.
    stores: tuple[str, ...] = ()
    #: The number of terms of the longest sum or recurrence, from the arguments.
    reduction: Callable[..., int] = lambda *args: max(max(a.shape, default=1) for a in args if isinstance(a, Tensor))
    #: What a reader of a verdict should know.
    note: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class Measured(Kernel):
    """A kernel together with what one call returned, and what float64 returned. Judges get this one."""

    #: By "output", "output 1", ... and "d<argument>".
    results: dict[str, Tensor]
    exact: dict[str, Tensor]
    #: The plain reference in the kernel's dtype.
    low: dict[str, Tensor]
    #: The results of further calls with the same arguments.
    again: tuple[dict[str, Tensor], ...] = ()


_hooks: list[Callable[[str, Tensor], Tensor]] = []


@contextmanager
def at_stored(hook: Callable[[str, Tensor], Tensor]) -> Iterator[None]:
    """Pass each stored value of a reference through `hook(place, value)`, and each gradient at it as `d<place>`."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.pop()


def stored(place: str, value: Tensor) -> Tensor:
    """Mark a value that a kernel may keep in low precision. It is the value itself, unless somebody looks."""
    for hook in _hooks:
        if value.requires_grad:
            value.register_hook(lambda grad, hook=hook: hook("d" + place, grad))  # type: ignore[no-untyped-call]
        value = hook(place, value)
    return value


def draw(
    generator: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype, scale: str, large: float = 1000.0
) -> Tensor:
    """Random numbers of a scale, rounded once to a dtype."""
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    match scale:
        case "large":
            x = x * large
        case "small":
            x = x * 1e-3
        case "needle":
            x = x * 0.01
            if x.numel():
                x[..., -1] = min(30.0, large)
                x.view(-1)[0] = -min(30.0, large)
        case "offset":
            x = x + min(30.0, large)
    return x.to(dtype)


def as_tuple(value: Any) -> tuple[Tensor, ...]:
    """Outputs, however many."""
    return (value,) if isinstance(value, Tensor) else tuple(value)


def derive(function: Callable[..., Any], kernel: Kernel, args: tuple[Any, ...], cotangents: Any) -> dict[str, Tensor]:
    """Call a function on fresh copies of the arguments, then its backward pass.

    Args:
        function: The kernel's call or its reference.
        kernel: Names the arguments, and those with a gradient.
        args: The arguments.
        cotangents: One for each output, or a function of the outputs that makes them.

    Returns:
        Outputs and gradients by name, detached.
    """
    named = {
        name: value.detach().clone(memory_format=torch.preserve_format).requires_grad_(name in kernel.wrt)
        if isinstance(value, Tensor)
        else value
        for name, value in zip(kernel.arguments, args, strict=True)
    }
    outputs = as_tuple(function(*named.values()))
    named_outputs = {f"output {i}" if i else "output": output.detach().clone() for i, output in enumerate(outputs)}
    with_grad = [i for i, output in enumerate(outputs) if output.requires_grad]
    given = cotangents(outputs) if callable(cotangents) else cotangents
    # `backward`, as a checkpoint of old refuses `torch.autograd.grad`.
    torch.autograd.backward([outputs[i] for i in with_grad], [given[i] for i in with_grad])
    leaves = {name: named[name] for name in kernel.wrt}
    return named_outputs | {
        "d" + name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves.items()
    }


def upcast(values: Any, dtype: torch.dtype = torch.float64) -> tuple[Any, ...]:
    """The same numbers in a wider dtype."""
    return tuple(
        value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value for value in values
    )


def random_cotangents(generator: torch.Generator) -> Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]:
    """A maker of standard normal cotangents in the outputs' dtypes."""
    return lambda outputs: tuple(
        torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype) for output in outputs
    )
