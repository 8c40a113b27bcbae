"""The law `surrogate`: what it takes for the derivative of a surrogate that stops gradients by name, or unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from gradspec import Case, FunctionSpec, Supports, verify
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.spec import Make


class Levels(torch.autograd.Function):
    """A trained level: the weight gets its cotangent times the level, which is the gradient of no map."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, level: Tensor) -> Tensor:
        ctx.save_for_backward(w, level)
        return (w > 0) * level

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        w, level = ctx.saved_tensors
        return grad * ((w > 0) * level), (grad * (w > 0)).sum()


def levels(w: Tensor, level: Tensor) -> Tensor:
    return (w > 0) * level


def by_detach(w: Tensor, level: Tensor) -> Tensor:
    return levels(w, level) + levels(w, level.detach()) * w


def by_detach_in_place(w: Tensor, level: Tensor) -> Tensor:
    return levels(w, level) + levels(w, level.clone().detach_()) * w


def straight_through(w: Tensor, level: Tensor) -> Tensor:
    map_ = by_detach(w, level)
    return map_ + (levels(w, level) - map_).detach()


def unseen(w: Tensor, level: Tensor) -> Tensor:
    return levels(w, level) + levels(w, level.data) * w


def other_detaches(w: Tensor, level: Tensor) -> Tensor:
    for _ in range(1 + int((w[0] * 1e12).floor().item()) % 2):
        level = 0.5 * level + 0.5 * level.detach()
    return levels(w, level)


def one_case(make: Make) -> Iterator[Case]:
    yield Case(name="one", args=(make(5), torch.tensor(1.3, dtype=torch.float64)))


def said_of(surrogate: Callable[..., Tensor]) -> dict[str, Status]:
    spec = FunctionSpec(
        name="levels",
        function=Levels.apply,
        primal=levels,
        surrogate=surrogate,
        wrt=("w", "level"),
        cases=one_case,
        supports=Supports.eager(),
    )
    asked = [law for law in LAWS if law.name in ("primal", "vjp", "surrogate")]
    return {v.law: v.status for v in verify([spec], asked, isolate=False).verdicts}


@pytest.mark.parametrize("surrogate", [by_detach, by_detach_in_place, straight_through])
def test_what_it_detaches_is_a_constant_of_its_map(surrogate: Callable[..., Tensor]) -> None:
    assert set(said_of(surrogate).values()) == {Status.HOLDS}


def test_what_it_stops_unseen_is_broken() -> None:
    assert said_of(unseen)["surrogate"] is Status.BROKEN


def test_one_that_detaches_by_its_values_is_no_map() -> None:
    assert said_of(other_detaches)["surrogate"] is Status.ERROR


def test_the_padding_of_an_embedding_of_torch_is_what_it_says():
    class Padded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight, index, padding):
            ctx.save_for_backward(index)
            ctx.shape, ctx.padding = weight.shape, padding
            return weight[index]

        @staticmethod
        def backward(ctx, bar):
            (index,) = ctx.saved_tensors
            kept = bar * (index != ctx.padding)[..., None]
            return bar.new_zeros(ctx.shape).index_add(0, index, kept), None, None

    def cases(make):
        yield (make(5, 4), torch.tensor([1, 0, 3, 3]), 3)

    def padded(weight, index, padding):
        return torch.nn.functional.embedding(index, weight, padding_idx=padding)

    def detaches_another(weight, index, padding):
        return torch.where((index == 1)[:, None], weight.data[index], padded(weight, index, padding))

    for surrogate, status in ((padded, Status.HOLDS), (detaches_another, Status.BROKEN)):
        spec = FunctionSpec(name="padded", function=Padded.apply, primal=padded, surrogate=surrogate, cases=cases)
        (verdict,) = verify([spec], ["surrogate"]).verdicts
        assert verdict.status is status
