"""Fifty steps of instance discrimination by one process and by ranks, and how far apart they end."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.functional import normalize
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from distributed.calls import largest_error, rows_of
from gradspec.nn import LinearAverage, shard

ROWS, INPUTS, FEATURES = 21, 6, 4
STEPS = 50


class Encoder(nn.Module):
    """Two layers, to norm 1; with activations that are computed again, or that are compiled."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.layers = nn.Sequential(nn.Linear(INPUTS, 8), nn.Tanh(), nn.Linear(8, FEATURES))

    def forward(self, x: Tensor) -> Tensor:
        """Return shape (B, FEATURES)."""
        if self.how == "activation checkpointing":
            return normalize(checkpoint(self.layers, x, use_reentrant=False))
        return normalize(self.layers(x))


def _wrapped(encoder: Encoder, how: str, mesh: DeviceMesh) -> nn.Module:
    if how == "FSDP2":
        return fully_shard(encoder, mesh=mesh)
    parallel = DistributedDataParallel(encoder, process_group=mesh.get_group())
    return torch.compile(parallel, backend="aot_eager") if how == "compiled encoder" else parallel


def _run(encoder: nn.Module, bank: LinearAverage, data: Tensor, batches: list[list[Tensor]], how: str) -> list[Tensor]:
    """Train on batches, each of some parts whose gradients add up; return the losses."""
    optimizer = torch.optim.SGD(encoder.parameters(), 0.05)
    autocast = torch.autocast("cpu", torch.bfloat16) if how == "bfloat16 autocast" else nullcontext()
    losses = []
    for parts in batches:
        optimizer.zero_grad()
        for k, y in enumerate(parts):
            last = k == len(parts) - 1
            waits = isinstance(encoder, DistributedDataParallel) and not last
            with encoder.no_sync() if waits else nullcontext():
                with autocast:
                    x = encoder(data[y])
                    loss = bank.loss(x, y) / len(parts)
                loss.backward()
            bank.update(x.to(bank.memory.dtype), y)
            losses.append(loss.detach())
        optimizer.step()
    return losses


def train(mesh: DeviceMesh, how: str, dtype: torch.dtype, sizes: tuple[int, ...] = (3, 3)) -> dict[str, Any]:
    """Return the errors of the losses, the encoder and the bank, how far the bank moves, and the rounding of one.

    Fifty steps enlarge what one step rounds: `rounding` is how far one process ends from where float64 does.
    """
    ranks, rank = mesh.size(), mesh.get_local_rank()
    batches = (sizes * ranks)[:ranks]
    encoder = Encoder(how).to(dtype)
    bank = LinearAverage(FEATURES, ROWS, T=0.2).to(dtype)
    data = torch.randn(ROWS, INPUTS, dtype=dtype)
    before = bank.memory.clone()
    parts = 2 if how == "gradient accumulation" else 1
    # Few rows and many draws: a row is repeated within a batch and between ranks.
    drawn = [[torch.randint(ROWS, (sum(batches),)) for _ in range(parts)] for _ in range(STEPS)]
    own = slice(sum(batches[:rank]), sum(batches[: rank + 1]))

    wrapped, mine = _wrapped(copy.deepcopy(encoder), how, mesh), shard(copy.deepcopy(bank), mesh)
    losses = _run(wrapped, mine, data, [[y[own] for y in step] for step in drawn], how)
    of_all = torch.stack(losses)
    torch.distributed.all_reduce(of_all)
    exact = copy.deepcopy(encoder).double(), copy.deepcopy(bank).double()
    expected = torch.stack(_run(encoder, bank, data, drawn, how))
    exact_losses = torch.stack(_run(*exact, data.double(), drawn, how))

    found = [p.full_tensor() if isinstance(p, DTensor) else p for p in wrapped.parameters()]
    assert isinstance(mine.memory, DTensor)
    return {
        "loss": largest_error(of_all / ranks, expected),
        "encoder": max(largest_error(a.data, b.data) for a, b in zip(found, encoder.parameters(), strict=True)),
        "bank": largest_error(mine.memory.to_local(), bank.memory[rows_of(mesh, ROWS)]),
        "moved": float((bank.memory - before).abs().max()),
        "rounding": max(
            largest_error(expected.double(), exact_losses),
            largest_error(bank.memory.double(), exact[1].memory),
            *(
                largest_error(a.data.double(), b.data)
                for a, b in zip(encoder.parameters(), exact[0].parameters(), strict=True)
            ),
        ),
    }
