"""The ranks that share a tensor by its rows: what of a mesh and of a DTensor is accepted, and three collectives.

The collectives are the operators of `torch.distributed._functional_collectives`, called by their own names: the
functions around them are renamed between torch 2.11 and 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

LOST = (
    "A rank of the mesh has died, or has not made this call within the time-out of its process group. Start all ranks "
    "again from their last checkpoint: torchrun --max-restarts does"
)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        error.add_note(LOST)
        raise


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The processes of a mesh of one dimension, as one of them sees them."""

    #: The number of this rank within the mesh.
    rank: int
    #: How many ranks the mesh has.
    size: int
    #: The name of their process group, as the functional collectives take it.
    group: str
    #: The kind of device on which the group communicates.
    device_type: str

    def rows_of(self, total: int) -> slice:
        """Return which rows of `total` are on this rank, as `Shard(0)` deals them."""
        height = -(-total // self.size)
        return slice(min(self.rank * height, total), min((self.rank + 1) * height, total))

    def all_gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all ranks, of one shape (B, ...), as one of shape (ranks * B, ...)."""
        return self._call("all_gather_into_tensor", tensor, self.size)

    def all_reduce(self, tensor: Tensor, how: str) -> Tensor:
        """Return the "sum" or the "max" over the ranks, of one shape."""
        return self._call("all_reduce", tensor, how)

    def reduce_scatter(self, tensor: Tensor) -> Tensor:
        """Return of the sum over the ranks, shape (ranks * B, ...), the part (B, ...) of this rank."""
        return self._call("reduce_scatter_tensor", tensor, "sum", self.size)

    def _call(self, name: str, tensor: Tensor, *options: str | int) -> Tensor:
        operators = torch.ops._c10d_functional
        with _explained():
            found = getattr(operators, name)(tensor.contiguous(), *options, self.group)
            return cast(Tensor, operators.wait_tensor(found))


def is_dtensor(value: object) -> bool:
    """Whether a value is a DTensor; nothing is imported to know it."""
    return type(value).__name__ == "DTensor"


def ranks_of(call: str, name: str, tensor: Any, mesh: Any = None) -> Ranks:
    """Return the ranks that hold the shards of a tensor.

    Args:
        call: the function that was called, for the messages.
        name: what it names the tensor, for the messages.
        tensor: a DTensor, or the shard of this rank.
        mesh: a DeviceMesh; None for that of the DTensor.

    Raises:
        TypeError: `mesh` is not a DeviceMesh.
        ValueError: the mesh has more than one dimension, is not that of the DTensor, or does not contain this process,
            or the DTensor is not sharded by its rows.
    """
    if is_dtensor(tensor):
        if mesh is not None and mesh != tensor.device_mesh:
            raise ValueError(f"{call}: mesh is {mesh}, and {name} is on {tensor.device_mesh}. Leave mesh out")
        mesh = tensor.device_mesh
    if type(mesh).__name__ != "DeviceMesh":
        raise TypeError(f"{call}: mesh is a {type(mesh).__name__}, expected a torch.distributed.DeviceMesh")
    if mesh.ndim != 1:
        raise ValueError(
            f"{call}: the mesh has {mesh.ndim} dimensions, expected 1. Name one of them, as in "
            'init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))["a"]'
        )
    if is_dtensor(tensor) and not tensor.placements[0].is_shard(0):
        placement = tensor.placements[0]
        raise ValueError(f"{call}: {name} is placed as {placement}, expected Shard(dim=0): some rows on each rank")
    if mesh.get_coordinate() is None:
        raise ValueError(f"{call}: this process is not in the mesh {mesh}. Call it on the ranks of the mesh only")
    group = mesh.get_group()
    return Ranks(
        rank=mesh.get_local_rank(), size=mesh.size(), group=group.group_name, device_type=str(mesh.device_type)
    )


def local_shard(tensor: Tensor) -> Tensor:
    """Return the rows of a tensor that this rank holds; the gradient of a DTensor is one, placed alike."""
    return cast(Tensor, tensor.to_local()) if is_dtensor(tensor) else tensor  # type: ignore[attr-defined]
