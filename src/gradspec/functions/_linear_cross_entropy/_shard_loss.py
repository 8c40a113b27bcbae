"""A call of the loss over a mesh: checked on every rank, so that a wrong one is an error on all and none waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec.functions._linear_cross_entropy._logits import Point
from gradspec.functions._linear_cross_entropy._shard_function import Layout, sharded_rows
from gradspec.functions._sharded import (
    Batch,
    Facts,
    Ranks,
    agreed,
    fingerprint,
    gathered,
    is_dtensor,
    local_shard,
    ranks_of,
)
from gradspec.functions._torch import has_tangent, outside_graphs, transforms_active

#: What a call names its target and its weight.
Names = tuple[str, str]


@outside_graphs
def sharded_loss(
    call: str,
    names: Names,
    given: tuple[Any, Any, Any, Any],
    check: Callable[[Any, Any], Point],
    reduction: str,
    mesh: Any = None,
) -> Tensor:
    """Return the loss of the rows of this rank, reduced.

    Args:
        call: the function that was called, for the messages.
        names: what it names its target and its weight.
        given: its x, target, weight and bias; the last two as DTensors, or as the rows of this rank.
        check: returns the `Point` of the shard's weight and bias, or refuses the call.
        reduction: "mean", "sum" or "none".
        mesh: the mesh, where the weight is not a DTensor.

    Raises:
        RuntimeError: another rank refuses its call, the ranks make different calls, or a transform is at work.
        IndexError: a rank has a target that is not a class.
    """
    *_, weight, bias = given
    _check_mode(call, *given)
    ranks = ranks_of(call, names[1], weight, mesh)
    point, facts, fault = None, Facts(), None
    try:
        _check_forms(call, names, given, ranks, mesh)
        point = check(local_shard(weight), None if bias is None else local_shard(bias))
        facts = _facts(point)
    except (TypeError, ValueError, RuntimeError) as error:
        fault = error
    found = agreed(call, ranks, facts, fault)
    assert point is not None, "a rank with a fault has raised it"
    batch = Batch(ranks=ranks, sizes=tuple(one.batch for one in found))
    shards = [one.shard for one in found]
    layout = Layout(call, batch, sum(shards[: ranks.rank]), sum(shards), any(one.of_rows for one in found))
    if not layout.classes:
        raise ValueError(f"{call}: the {names[1]} has no row on any rank, expected one at least")
    every = gathered(batch, point.target) if batch.height else point.target
    counted = batch.real(every.device)
    if point.ignore_index is not None:
        counted = counted & (every != point.ignore_index)
    _check_targets(call, names, every, counted, layout.classes)
    # Where no rank has a row, nothing is asked of the weight, on any of them.
    loss = sharded_rows(point.x, every - layout.first, counted, point, layout) if batch.height else point.x.sum(-1)
    if reduction == "none":
        return loss
    total = loss.sum()
    # Over the rows that a rank has on average: the mean over the ranks is the mean over the rows of all of them.
    return total * ranks.size / counted.sum() if reduction == "mean" else total


def _facts(point: Point) -> Facts:
    tracked = torch.is_grad_enabled()
    by_row, by_class = (point.x, point.margin), (point.weight, point.bias)
    temperature = None if isinstance(point.temperature, Tensor) else point.temperature
    return Facts(
        batch=point.x.shape[0],
        shard=point.weight.shape[0],
        of_rows=tracked and any(value is not None and value.requires_grad for value in by_row),
        features=point.x.shape[1],
        dtype=fingerprint(point.weight.dtype),
        bias=point.bias is not None,
        margin=point.margin is not None,
        of_weight=tracked
        and sum(2**k for k, value in enumerate(by_class) if value is not None and value.requires_grad),
        options=fingerprint(temperature, point.ignore_index, point.label_smoothing),
    )


def _check_forms(call: str, names: Names, given: tuple[Any, Any, Any, Any], ranks: Ranks, mesh: Any) -> None:
    x, target, weight, bias = given
    for name, value in (("x", x), (names[0], target)):
        if is_dtensor(value):
            raise TypeError(f"{call}: {name} is a DTensor, expected the rows of this rank. Write {name}.to_local()")
    if bias is not None and is_dtensor(bias) != is_dtensor(weight):
        raise TypeError(f"{call}: give both the {names[1]} and the bias as DTensors, or the rows of this rank of both")
    if is_dtensor(bias):
        ranks_of(call, "bias", bias, weight.device_mesh)


def _check_mode(call: str, *given: Any) -> None:
    """Refuse the modes in which nothing can be asked of the other ranks: the same program put all of them there."""
    if transforms_active():
        raise RuntimeError(f"{call}: torch.func and torch.vmap do not work over a mesh. Use autograd")
    if any(isinstance(value, Tensor) and has_tangent(value) for value in given):
        raise RuntimeError(f"{call}: forward mode does not work over a mesh. Use reverse mode")


def _check_targets(call: str, names: Names, target: Tensor, counted: Tensor, classes: int) -> None:
    """Refuse a class that no rank has: each rank sees all targets, so that each refuses it."""
    wrong = counted & ((target < 0) | (target >= classes))
    if target.device.type != "cpu":
        torch._assert_async(~wrong.any(), f"{call}: {names[0]} is out of range, the {names[1]} has {classes} rows")
    elif bool(wrong.any()):
        raise IndexError(
            f"{call}: {names[0]} holds {int(target[wrong][0])} on a rank, and the {names[1]} has rows 0 to "
            f"{classes - 1} on all of them"
        )
