"""One call of the loss by one process and by ranks, and how far their numbers are apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from gradspec.functions import linear_cross_entropy
from gradspec.functions._linear_cross_entropy import _logits as chunked


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call: sizes, and what of it there is."""

    #: The rows of each rank; of four ranks the same again.
    batches: tuple[int, ...] = (3, 3)
    classes: int = 11
    features: int = 4
    bias: bool = False
    margin: bool = False
    weight: bool = True
    by_mesh: bool = False
    #: Whether p - q may be kept for a gradient by the weight; else the logits are computed again.
    kept: bool = True
    dtype: torch.dtype = torch.float64
    options: tuple[tuple[str, Any], ...] = ()


def largest_error(found: Tensor, expected: Tensor, terms: Tensor | None = None) -> float:
    """Return the largest difference, over the largest number; of `terms`, where a sum may cancel to nothing."""
    assert found.shape == expected.shape, f"{found.shape} and {expected.shape}"
    assert found.dtype == expected.dtype
    if not found.numel():
        return 0.0
    largest = (expected if terms is None else torch.cat([expected.flatten(), terms.flatten()])).abs().max()
    # As numbers of Python: float32 has no 1e-300, and zero over zero passes where it is compared.
    return float((found - expected).abs().max()) / max(float(largest), 1e-300)


def rows_of(mesh: DeviceMesh, total: int) -> slice:
    """Return the rows that `Shard(0)` gives this rank."""
    height = -(-total // mesh.size())
    start = min(mesh.get_local_rank() * height, total)
    return slice(start, min(start + height, total))


def compare(mesh: DeviceMesh, call: Call) -> dict[str, float]:
    """Return the errors of the loss, and of each gradient, of this rank; and the largest logit."""
    with mock.patch.object(chunked, "KEPT_NUMBERS", chunked.KEPT_NUMBERS if call.kept else -1):
        return _compare(mesh, call)


def _compare(mesh: DeviceMesh, call: Call) -> dict[str, float]:
    ranks, rank, options = mesh.size(), mesh.get_local_rank(), dict(call.options)
    sizes = (call.batches * ranks)[:ranks]
    own = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    make = torch.Generator().manual_seed(1)

    def number(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make, dtype=torch.float64).to(call.dtype)

    total = sum(sizes)
    x, weight, target = (
        number(total, call.features),
        number(call.classes, call.features),
        torch.randint(call.classes, (total,), generator=make),
    )
    if options.get("ignore_index", -100) == -100 and total:
        target[0] = -100
    whole: dict[str, Tensor] = {"x": x, "weight": weight}
    if call.bias:
        whole["bias"] = number(call.classes)
    if call.margin:
        whole["margin"] = number(total)
    leaves = {n: v.clone().requires_grad_(n != "weight" or call.weight) for n, v in whole.items()}
    expected = linear_cross_entropy(target=target, **leaves, **options)
    expected.mean().backward()

    mine: dict[str, Any] = {n: whole[n][own].clone().requires_grad_() for n in ("x", "margin") if n in whole}
    rows = rows_of(mesh, call.classes)
    for name in [name for name in ("weight", "bias") if name in whole]:
        placed = whole[name][rows].clone() if call.by_mesh else distribute_tensor(whole[name], mesh, [Shard(0)])
        mine[name] = placed.requires_grad_(name != "weight" or call.weight)
    found = linear_cross_entropy(target=target[own], **mine, **options, mesh=mesh if call.by_mesh else None)
    (found if found.ndim == 0 else found.sum() * ranks / total).backward()

    # A loss is a log-sum-exp less a logit: its rounding is one of logits, and of one class nothing else is left.
    logits = x @ weight.T / options.get("temperature", 1.0)
    if found.ndim == 0:
        reduced = found.detach().clone()
        torch.distributed.all_reduce(reduced)
        errors = {"loss": largest_error(reduced / ranks, expected.detach(), logits)}
    else:
        errors = {"loss": largest_error(found.detach(), expected.detach()[own], logits)}
    for name, leaf in mine.items():
        if not leaf.requires_grad:
            assert leaf.grad is None
            continue
        gradient, wanted = leaf.grad, leaves[name].grad
        assert wanted is not None
        if name in ("x", "margin"):
            # The mean over the ranks, as DistributedDataParallel takes it.
            errors[name] = largest_error(gradient / ranks, wanted[own])
            continue
        if not call.by_mesh:
            assert isinstance(gradient, DTensor)
            assert gradient.placements == (Shard(0),)
            assert gradient.shape == wanted.shape
            gradient = gradient.to_local()
        errors[name] = largest_error(gradient, wanted[rows])
    return errors | {"largest logit": float(logits.abs().max())}
