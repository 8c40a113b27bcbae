"""The passes in which the laws of effects watch a function: a plain one, one beside a tangent, one through backward.

A function may depend on others that only forward mode, or only the backward pass of its backward pass, calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.graph import get_gradient_edge

from gradspec.law import HOLDS, Finding, Status, Trial
from gradspec.laws.tensor.support._call import Inputs, SpecFaultError, fresh, like, or_added, outputs
from gradspec.laws.tensor.support._dense import dense
from gradspec.laws.tensor.support._reference import is_asked

Gradients = dict[str, Tensor | None]


@dataclass
class Order:
    """The backward pass of some tensors: of outputs, of their gradients, of the gradients of these."""

    outputs: dict[str, Tensor]
    #: What they are differentiated with respect to.
    sources: Mapping[str, Tensor]
    cotangents: dict[str, Tensor]
    #: Whether nothing differentiates this pass.
    is_last: bool
    #: What the pass gave; None before it ran.
    found: Gradients | None = field(default=None, repr=False)

    def differentiate(self, cotangents: Mapping[str, Tensor] | None = None, *, retain: bool = False) -> Gradients:
        """Run the pass, with these cotangents or its own, and return the gradients of the sources."""
        given = cotangents or self.cotangents
        ends, starts = list(self.outputs.values()), list(self.sources.values())
        v = [given[name] for name in self.outputs]
        how: Any = {"create_graph": not self.is_last, "retain_graph": True if retain else None}

        def run() -> tuple[Tensor | None, ...]:
            # Edges and not tensors: on tensors grad is a torch function itself, inside which no mode sees methods.
            edges = [[get_gradient_edge(tensor) for tensor in tensors] for tensors in (ends, starts)]
            return torch.autograd.grad(edges[0], edges[1], v, allow_unused=True, **how)

        got = or_added(run, ends, starts, v, **how)
        self.found = dict(zip(self.sources, got, strict=True))
        return self.found


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One way to call a function and to differentiate what it returns."""

    #: In front of what a law says; empty for the plain pass.
    name: str = ""
    #: Whether the arguments carry tangents.
    tangents: bool = False
    #: How often the output is differentiated.
    orders_of: int = 1

    def level(self) -> AbstractContextManager[object]:
        """Return the context in which all of the pass runs."""
        return forward_ad.dual_level() if self.tangents else nullcontext()

    def leaves(self, inputs: Inputs) -> dict[str, Tensor]:
        """Return new leaves for the arguments that are differentiated."""
        if not self.tangents:
            return inputs.leaves()
        # torch refuses a tangent of an expanded tensor whatever the function.
        return dict(zip(inputs.wrt, (t.requires_grad_() for t in inputs.tensors()), strict=True))

    def along(self, leaves: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
        """Return the tangents of the leaves, none where they carry none."""
        return dict(zip(leaves, like(tuple(leaves.values()), seed), strict=True)) if self.tangents else {}

    def args(
        self, inputs: Inputs, leaves: Mapping[str, Tensor], along: Mapping[str, Tensor] | None = None, *, seed: int = 0
    ) -> tuple[Any, ...]:
        """Return the arguments of the call; `along` are the tangents of the leaves, drawn unless given."""
        along = self.along(leaves, seed) if along is None else along
        duals = {
            name: forward_ad.make_dual(leaf, along[name]) if name in along else leaf  # type: ignore[no-untyped-call]
            for name, leaf in leaves.items()
        }
        return inputs.args(duals)

    def orders(self, y: tuple[Any, ...], leaves: Mapping[str, Tensor], seed: int) -> Iterator[Order]:
        """Yield the backward pass of the outputs, then the backward pass of that; each is run unless it has been."""
        sources, current = dict(leaves), {f"output {k}": t for k, t in enumerate(y)}
        for k in range(self.orders_of):
            current = {n: t for n, t in current.items() if isinstance(t, Tensor) and t.requires_grad}
            if not (current and sources):
                return
            is_last = k + 1 == self.orders_of
            drawn = [t.requires_grad_(not is_last) for t in like(tuple(current.values()), seed + k)]
            order = Order(current, dict(sources), dict(zip(current, drawn, strict=True)), is_last)
            yield order
            got = order.differentiate() if order.found is None else order.found
            sources |= {f"the cotangent of {name}": v for name, v in order.cotangents.items()}
            full = {name: dense(t) for name, t in got.items()}
            current = {f"{'second ' * k}gradient of {name}": t for name, t in full.items() if t is not None}

    def backward(self, y: tuple[Any, ...], leaves: Mapping[str, Tensor], seed: int) -> None:
        """Run the backward pass of the outputs, and the backward pass of that."""
        for order in self.orders(y, leaves, seed):
            order.differentiate()


PLAIN = Pass()
BESIDE_A_TANGENT = Pass(name="beside a tangent", tangents=True)
THROUGH_BACKWARD = Pass(name="where backward is differentiated", orders_of=3)


def passes(trial: Trial) -> Iterator[Pass]:
    """Yield the passes that a spec promises; the case decides nothing but whether there is a gradient.

    An audit knows no promise, and looks at all of them.
    """
    yield PLAIN
    if not Inputs.of(trial).wrt:
        return
    if is_asked(trial.spec, "forward_mode"):
        yield BESIDE_A_TANGENT
    if is_asked(trial.spec, "double_backward"):
        yield THROUGH_BACKWARD


def in_each_pass(
    trial: Trial, watch: Callable[[Pass], Any], judge: Callable[[Pass, Any], Finding] = lambda _, found: found
) -> Finding:
    """Return the first finding of the passes that does not hold.

    Where the function raises in another pass than the plain one, the laws `jvp` and `second_order` say so.

    Args:
        trial: the trial of the law.
        watch: what is done in each pass.
        judge: what is found of that once the pass has ended, and torch has dropped its tangents.
    """
    said = HOLDS
    for way in passes(trial):
        try:
            with way.level():
                watched = watch(way)
            finding = judge(way, watched)
        except SpecFaultError:
            raise
        except Exception:
            if way is PLAIN:
                raise
            continue
        if finding.status is not Status.HOLDS:
            return replace(finding, message=f"{way.name}, {finding.message}") if way.name else finding
        said = finding if said is HOLDS else said
    return said


def called(trial: Trial, way: Pass, inputs: Inputs, leaves: Mapping[str, Tensor]) -> tuple[Any, ...]:
    """Return what the function gives in a pass."""
    return outputs(trial.spec.function(*way.args(inputs, leaves, seed=trial.seed)))


def copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a copy of each tensor, in memory of its own."""
    return {name: fresh(tensor) for name, tensor in tensors.items()}
