"""Declared state through forward and backward passes of all kinds: where it went, and where it should have gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, fresh, gradients, like, outputs
from gradspec.laws.tensor.support._reference import on_spec_side

State = dict[str, Tensor]
#: What happened, the state that it left, and the state that it should have left.
Episode = tuple[str, State, State]


class _Scene:
    """Calls that share one state, and what the spec says of it."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.inputs = Inputs.of(trial)
        self.names = trial.spec.effects.writes
        self.state = self.start()

    def start(self) -> State:
        """Put the state back to that of the case."""
        self.state = {name: fresh(self.inputs.values[name]) for name in self.names}
        return {name: tensor.clone() for name, tensor in self.state.items()}

    def forward(self, leaves: State, way: Callable[..., Any] | None = None) -> tuple[Any, ...]:
        function = self.trial.spec.function
        args = self.inputs.args({**leaves, **self.state})
        return outputs(way(function, *args) if way else function(*args))

    def backward(self, y: tuple[Any, ...], leaves: State, **how: Any) -> dict[str, Tensor | None]:
        return gradients(y, leaves, like(y, self.trial.seed), **how)

    def leaves(self, turn: int = 0) -> State:
        """Return new leaves; those of a later turn have other values."""
        own = self.inputs.leaves()
        drawn = like(tuple(own.values()), self.trial.seed + turn)
        return own if not turn else {n: t.requires_grad_() for n, t in zip(own, drawn, strict=True)}

    def after(self, state: State, leaves: State) -> State:
        given = {**{name: leaf.detach() for name, leaf in leaves.items()}, **state}
        moved = on_spec_side("state_after", self.trial.spec.state_after or dict, *self.inputs.args(given))
        return {name: moved[name].detach() for name in self.names}


def episodes(trial: Trial) -> Iterator[Episode]:
    """Yield what state does in each kind of pass, and what it should do."""
    scene = _Scene(trial)
    leaves, start = scene.leaves(), scene.start()
    y = scene.forward(leaves)
    yield "a forward pass", scene.state, start
    with torch.no_grad():
        scene.forward(leaves)
    yield "a forward pass under no_grad", scene.state, start
    if not leaves:
        return
    yield from _failed_pass(scene)

    leaves, start = scene.leaves(), scene.start()
    moved = scene.after(start, leaves)
    y = scene.forward(leaves)
    scene.backward(y, leaves, retain_graph=True)
    yield "a forward and a backward pass", scene.state, moved
    scene.backward(y, leaves)
    yield "a second backward pass over a retained graph", scene.state, moved

    scene.start()
    y = scene.forward(leaves, lambda function, *args: checkpoint(function, *args, use_reentrant=False))
    scene.backward(y, leaves)
    yield "a forward and a backward pass under checkpointing", scene.state, moved
    yield from _double_backward(scene)
    yield from _two_pending(scene)


def _failed_pass(scene: _Scene) -> Iterator[Episode]:
    """A backward pass that raises behind the function: what moves before the end of the pass has moved by then."""
    start, leaves = scene.start(), scene.leaves()

    def fail(_: Tensor) -> None:
        raise _InterruptedError

    behind = {name: leaf.clone() for name, leaf in leaves.items()}
    for tensor in behind.values():
        tensor.register_hook(fail)  # type: ignore[no-untyped-call]
    y = scene.forward(behind)
    with suppress(_InterruptedError):
        scene.backward(y, leaves)
    yield "a backward pass that raises before its end", scene.state, start


def _double_backward(scene: _Scene) -> Iterator[Episode]:
    start, leaves = scene.start(), scene.leaves()
    # Squares make the cotangents depend on y, so that the second pass goes through the function again.
    loss = _square(scene.forward(leaves))
    first = gradients((loss,), leaves, (torch.ones_like(loss),), create_graph=True)
    penalty = _square(tuple(g for g in first.values() if g is not None))
    if penalty.requires_grad:
        with suppress(Exception):  # that it may be refused is for the law second_order to say
            torch.autograd.grad(penalty, list(leaves.values()), allow_unused=True)
    yield "a backward pass and the backward pass of that", scene.state, scene.after(start, leaves)


def _two_pending(scene: _Scene) -> Iterator[Episode]:
    first, second = scene.leaves(), scene.leaves(1)

    start = scene.start()
    y_1, y_2 = scene.forward(first), scene.forward(second)
    scene.backward(y_2, second)
    scene.backward(y_1, first)
    right = scene.after(scene.after(start, second), first)
    yield "two forward passes, then the second one's backward pass and the first one's", scene.state, right

    start, ran = scene.start(), list[State]()
    y_1, y_2 = scene.forward(first), scene.forward(second)
    for y, leaves in ((y_1, first), (y_2, second)):
        y[0].register_hook(lambda _, leaves=leaves: ran.append(leaves))
    both = {f"{name} {k}": leaf for k, leaves in enumerate((first, second)) for name, leaf in leaves.items()}
    scene.backward((*y_1, *y_2), both)
    for leaves in ran:
        start = scene.after(start, leaves)
    yield "two forward passes and one backward pass through both", scene.state, start


def _square(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([(t * t.conj()).real.sum() for t in tensors]).sum()


class _InterruptedError(Exception):
    """Raised in a backward pass on purpose."""
