"""One call of a function on DTensors, forward and backward, and what it has to give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs, fresh, like, outputs, vjp
from gradspec.laws.tensor.support._ranks import (
    PLAIN,
    dimension_of,
    exchange,
    is_of_simulation,
    on_each_rank,
    placed,
    placement_of,
    refuse,
)
from gradspec.laws.tensor.support._reference import on_spec_side, reference, stop
from gradspec.spec import Placements

Made = TypeVar("Made")


def places_in(inputs: Inputs, way: Placements) -> dict[str, str]:
    """Return how the tensors of a case are placed, by name; none where one of them has nothing to shard."""
    tensors = {n: v for n, v in inputs.values.items() if n in way.arguments and isinstance(v, Tensor)}
    places = {name: way.arguments[name] for name in tensors}
    return places if all(_fits(tensors[name], place) for name, place in places.items()) else {}


def _fits(tensor: Tensor, place: str) -> bool:
    """Whether a tensor has the dimension to shard; torch keeps no placement where that is of size 0."""
    return place == "replicate" or any(tensor.shape[dimension_of(place) :][:1])


@dataclass(frozen=True)
class PlacedCall:
    """The arguments of a case, how they are placed on a mesh, and what the call gives on whole tensors."""

    function: Any
    inputs: Inputs
    mesh: Any
    places: Mapping[str, str]
    y: tuple[Tensor, ...]
    v: tuple[Tensor, ...]
    gradients: Mapping[str, Tensor | None]

    @classmethod
    def of(cls, trial: Trial, way: Placements, mesh: Any) -> PlacedCall:
        """Return the call of a case, placed in one of the ways of the spec."""
        inputs = Inputs.of(trial)
        y = tuple(stop(t) for t in outputs(on_spec_side("primal", trial.spec.primal, *inputs.args())))
        v = like(y, trial.seed)
        gradients = vjp(reference(trial.spec), inputs, v)
        return cls(way.call or trial.spec.function, inputs, mesh, places_in(inputs, way), y, v, gradients)

    def forward(self, plain: Collection[str] = ()) -> tuple[tuple[Any, ...], dict[str, Tensor]]:
        """Return the outputs, and the leaves by name; some arguments may stay plain tensors."""
        given = {
            name: placed(fresh(self.inputs.values[name]), place, self.mesh)
            for name, place in self.places.items()
            if name not in plain
        }
        for name in self.inputs.wrt:
            given[name] = given.get(name, fresh(self.inputs.values[name])).requires_grad_()
        y = outputs(self.function(*self.inputs.args(given)))
        exchange()  # before any collective of ours, which a rank that raised would not join
        return y, {name: given[name] for name in self.inputs.wrt}

    def backward(
        self, y: tuple[Any, ...], leaves: Mapping[str, Tensor], handed: tuple[str, ...]
    ) -> dict[str, Tensor | None]:
        """Return the gradients of the leaves; the cotangent of each output is placed as `handed` says."""
        v = [
            fresh(w) if how == PLAIN else placed(fresh(w), how, self.mesh)
            for w, how in zip(self.v, handed, strict=True)
        ]
        pairs = [(t, w) for t, w in zip(y, v, strict=True) if t.requires_grad]
        if not pairs:
            return dict.fromkeys(leaves)
        given = {"allow_unused": True, "retain_graph": True}
        got = torch.autograd.grad([t for t, _ in pairs], list(leaves.values()), [w for _, w in pairs], **given)
        exchange()
        return dict(zip(leaves, got, strict=True))

    def until_refused(self, plain: Collection[str]) -> Iterator[tuple[str, list[Tensor | None], Tensor | None, bool]]:
        """Yield what a call with some plain tensors gives each rank, beside what is right, until an error refuses it.

        Nothing is yielded where the call itself is refused, and values only where its backward pass is.
        """
        if (made := _unless_refused(lambda: self.forward(plain))) is None:
            return
        y, leaves = made
        if (values := _unless_refused(lambda: [on_each_rank(t) for t in y])) is None:
            return
        for k, (mine, right) in enumerate(zip(values, self.y, strict=True)):
            yield "value" if len(y) == 1 else f"output {k}", mine, right, False
        handed = tuple(cotangent_of(placement_of(t)) for t in y)
        if (got := _unless_refused(lambda: self.backward(y, leaves, handed))) is None:
            return
        gradients = _unless_refused(lambda: {name: on_each_rank(t) for name, t in got.items()})
        for name, mine in (gradients or {}).items():
            yield f"gradient of `{name}`", mine, self.gradients[name], True


def _unless_refused(call: Callable[[], Made]) -> Made | None:
    """Return what a call gives; None where an error refuses it, on one real rank at least: the others then stop too."""
    try:
        return call()
    except Exception as error:
        if is_of_simulation(error):
            raise
        refuse(error)
        return None


def cotangent_of(placement: str) -> str:
    """Return how the cotangent of an output is placed by itself: that of a pending sum is the same on each rank."""
    return "replicate" if placement == "partial" else placement
