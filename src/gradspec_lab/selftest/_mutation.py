"""One way to break a Function on purpose: a method is replaced by a changed one, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import outputs

#: What a mutation makes of a method: the class and the method as it is, to the method that replaces it.
Change = Callable[[type, Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A disease in general: any Function can be given it."""

    #: In the words of the specimens: "sign_flipped".
    name: str
    #: The static method that is replaced; `class` for the class itself.
    method: Literal["forward", "setup_context", "backward", "jvp", "class"]
    change: Change
    #: Whether only a function with several differentiated arguments can have it.
    several: bool = False
    #: The names of the Functions in which it would change nothing, each with the reason beside it.
    spares: tuple[str, ...] = ()
    #: Whether a class can have it, where the method does not say so.
    can: Callable[[Any], bool] = lambda cls: True

    def apply(self, cls: type) -> None:
        """Replace the method, for good: call it in a process that ends afterwards."""
        if self.method == "class":
            self.change(cls, lambda: None)()
        else:
            setattr(cls, self.method, staticmethod(self.change(cls, getattr(cls, self.method))))


def on_gradients(change: Callable[[Tensor, Tensor], Tensor | None]) -> Change:
    """Return the mutation of a backward that changes each gradient; it sees the gradient and the cotangent."""

    def mutate(cls: type, backward: Callable[..., Any]) -> Callable[..., Any]:
        def mutant(ctx: Any, *y_bars: Tensor) -> tuple[Any, ...]:
            gradients = outputs(backward(ctx, *y_bars))
            return tuple(change(g, y_bars[0]) if isinstance(g, Tensor) else g for g in gradients)

        return mutant

    return mutate


def before_backward(act: Callable[[Any, Tensor], Tensor | None]) -> Change:
    """Return the mutation of a backward that first does something with ctx and cotangent, or replaces the latter."""

    def mutate(cls: type, backward: Callable[..., Any]) -> Callable[..., Any]:
        def mutant(ctx: Any, *y_bars: Tensor) -> Any:
            replaced = act(ctx, y_bars[0]) if isinstance(y_bars[0], Tensor) else None
            return backward(ctx, y_bars[0] if replaced is None else replaced, *y_bars[1:])

        return mutant

    return mutate


def on_output(change: Callable[[Tensor, Tensor], Tensor]) -> Change:
    """Return the mutation of a forward that changes each output; it sees that and the first tensor argument."""

    def mutate(cls: type, forward: Callable[..., Any]) -> Callable[..., Any]:
        def mutant(*args: Any) -> Any:
            y = forward(*args)
            return tuple(change(t, _first(args)) for t in y) if isinstance(y, tuple) else change(y, _first(args))

        return mutant

    return mutate


def before_forward(act: Callable[[Tensor], object]) -> Change:
    """Return the mutation of a forward that first does something with the first tensor argument."""

    def mutate(cls: type, forward: Callable[..., Any]) -> Callable[..., Any]:
        def mutant(*args: Any) -> Any:
            act(_first(args))
            return forward(*args)

        return mutant

    return mutate


def on_tangent(change: Callable[[Tensor, Tensor], Tensor]) -> Change:
    """Return the mutation of a jvp that changes what it returns; it sees that and the first tangent."""

    def mutate(cls: type, jvp: Callable[..., Any]) -> Callable[..., Any]:
        def mutant(ctx: Any, *x_dots: Any) -> Any:
            y_dot = jvp(ctx, *x_dots)
            if isinstance(y_dot, tuple):  # of several outputs, the tangent of the first one
                return (change(y_dot[0], _first(x_dots)), *y_dot[1:])
            return change(y_dot, _first(x_dots)) if isinstance(y_dot, Tensor) else y_dot

        return mutant

    return mutate


def after_setup(act: Callable[[Any, tuple[Any, ...], Any], None]) -> Change:
    """Return the mutation of a setup_context that then does something with ctx, the inputs and the output."""

    def mutate(cls: type, setup: Callable[..., Any]) -> Callable[..., Any]:
        def mutant(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            setup(ctx, inputs, output)
            act(ctx, inputs, output)

        return mutant

    return mutate


def on_class(act: Callable[[type], None]) -> Change:
    """Return the mutation that changes the class itself."""
    return lambda cls, _: lambda: act(cls)


def _first(args: tuple[Any, ...]) -> Tensor:
    return next((arg for arg in args if isinstance(arg, Tensor)), torch.zeros(()))
