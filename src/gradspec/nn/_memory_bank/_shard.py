"""The rows of a memory bank over the ranks of a mesh: how they are drawn, dealt out and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from gradspec.functions._sharded import Ranks, is_dtensor, ranks_of

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from gradspec.nn._memory_bank._module import LinearAverage

#: How many rows are drawn from one seed: the rows do not depend on the number of ranks.
BLOCK = 1024


def shard(bank: LinearAverage, mesh: DeviceMesh) -> LinearAverage:
    """Deal out the rows of a memory bank over the ranks of a mesh: each keeps its own rows, and frees the others.

    Every rank calls it, and gets the rows that rank 0 has. From then on `bank.memory` is a `DTensor` placed as
    `Shard(0)`, `bank.loss` and `bank.update` take the batch of each rank, and `bank(x, y)` is refused: no rank holds
    all the logits. For a bank that does not fit one rank, write `LinearAverage(..., mesh=mesh)`.

    Args:
        bank: a `LinearAverage`; it changes in place.
        mesh: a `torch.distributed.DeviceMesh` of one dimension.

    Returns:
        The bank.

    Raises:
        TypeError: `mesh` is not a DeviceMesh, or `bank` is not a LinearAverage.
        ValueError: the mesh has more than one dimension, or the bank is sharded already.

    Example:
        >>> from gradspec.nn import LinearAverage, shard
        >>> bank = LinearAverage(inputSize=3, outputSize=100)
        >>> shard(bank, "cpu")
        Traceback (most recent call last):
        TypeError: shard: mesh is a str, expected a torch.distributed.DeviceMesh
    """
    memory = getattr(bank, "memory", None)
    if not isinstance(memory, Tensor):
        raise TypeError(f"shard: bank is a {type(bank).__name__}, expected a LinearAverage")
    if is_dtensor(memory):
        raise ValueError("shard: the bank is sharded already. Make a new one to place it on another mesh")
    ranks_of("shard", "memory", None, mesh)
    from torch.distributed.tensor import Shard, distribute_tensor

    bank.register_buffer("memory", distribute_tensor(memory, mesh, [Shard(0)]))
    return bank


def drawn_over(mesh: DeviceMesh, rows: int, features: int, bound: float) -> Tensor:
    """Return a bank that is uniform between -bound and bound; each rank draws only its own rows.

    The seed is that of rank 0, and a block of rows has one of its own, so that any number of ranks draws the same bank.
    """
    ranks = ranks_of("LinearAverage", "memory", None, mesh)
    seed = int(ranks.all_gather(torch.randint(2**62, (1,), device=ranks.device_type))[0])
    own = ranks.rows_of(rows)
    local = torch.empty(own.stop - own.start, features, device=ranks.device_type)
    for start in range(own.start // BLOCK * BLOCK, own.stop, BLOCK):
        generator = torch.Generator().manual_seed(seed + start // BLOCK)
        height = min(BLOCK, rows - start)
        block = torch.rand(height, features, generator=generator, device="cpu").mul_(2 * bound).sub_(bound)
        first, last = max(start, own.start), min(start + height, own.stop)
        local[first - own.start : last - own.start] = block[first - start : last - start]
    return _placed(local, mesh, rows)


def sharded_like(memory: Tensor, whole: Tensor) -> Tensor:
    """Return a whole bank placed as another one is: each rank reads only its own rows of it."""
    if is_dtensor(whole):
        return whole
    ranks: Ranks = ranks_of("LinearAverage", "memory", memory)
    rows = whole[ranks.rows_of(whole.shape[0])]
    return _placed(rows, memory.device_mesh, whole.shape[0])  # type: ignore[attr-defined]


def _placed(local: Tensor, mesh: DeviceMesh, rows: int) -> Tensor:
    from torch.distributed.tensor import DTensor, Shard

    shape = torch.Size((rows, local.shape[1]))
    placed = DTensor.from_local(local, mesh, [Shard(0)], run_check=False, shape=shape, stride=(local.shape[1], 1))
    return cast(Tensor, placed)
