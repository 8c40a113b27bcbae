"""The processes that torchrun starts, and one process where it starts none: the same script for both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from gradspec.nn import LinearAverage, shard


class Ranks:
    """One process, or those of a mesh, each of which has a part of every batch."""

    def __init__(self, mesh: DeviceMesh | None) -> None:
        self.mesh = mesh
        self.size = 1 if mesh is None else mesh.size()
        self.rank = 0 if mesh is None else mesh.get_local_rank()

    def parallel(self, encoder: nn.Module) -> nn.Module:
        """Return the encoder, with its gradients averaged over the ranks."""
        return encoder if self.mesh is None else DistributedDataParallel(encoder, process_group=self.mesh.get_group())

    def deal(self, bank: LinearAverage) -> LinearAverage:
        """Return the bank, with its rows dealt out over the ranks."""
        return bank if self.mesh is None else shard(bank, self.mesh)

    def own(self, rows: Tensor) -> Tensor:
        """Return the part of a batch that this rank takes."""
        return rows.tensor_split(self.size)[self.rank]

    def mean(self, loss: Tensor) -> float:
        """Return the mean over the ranks."""
        total = loss.detach().clone()
        if self.mesh is not None:
            torch.distributed.all_reduce(total)
        return total.item() / self.size


@contextmanager
def ranks() -> Iterator[Ranks]:
    """Join the processes that torchrun has started, if it has."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Ranks(None)
        return
    torch.distributed.init_process_group("gloo")
    try:
        yield Ranks(init_device_mesh("cpu", (torch.distributed.get_world_size(),)))
    finally:
        torch.distributed.destroy_process_group()
