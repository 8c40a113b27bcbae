"""What ranks do with a sharded bank: move it, save it, load it, and call it wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor

from distributed.calls import rows_of
from gradspec.functions import InstanceDiscriminationLoss, LinearAverageOp
from gradspec.nn import LinearAverage, shard


def numbered(rows: int, features: int = 2) -> Tensor:
    """Return a bank whose rows are told apart, none of norm 1: a move is seen, whatever moves."""
    return 1 + torch.arange(rows * features, dtype=torch.float32).view(rows, features)


def update(mesh: DeviceMesh, rows: int, y: list[list[int]]) -> list[list[float]]:
    """Move the rows `y` of each rank; return those of this rank."""
    bank = LinearAverage(2, rows)
    bank.memory.copy_(numbered(rows))
    mine, rank = shard(bank, mesh), mesh.get_local_rank()
    places = torch.tensor(y[rank], dtype=torch.int64)
    x = 100.0 * rank + torch.arange(2.0 * len(places)).view(-1, 2)
    mine.update(x, places)
    assert isinstance(mine.memory, DTensor)
    return mine.memory.to_local().tolist()


def drawn(mesh: DeviceMesh, rows: int) -> tuple[list[list[float]], str]:
    """Return the rows that this rank draws, and how the bank presents itself."""
    torch.manual_seed(mesh.get_local_rank())
    bank = LinearAverage(3, rows, T=0.1, mesh=mesh)
    assert isinstance(bank.memory, DTensor)
    return bank.memory.to_local().tolist(), repr(bank)


def save(mesh: DeviceMesh, folder: str, rows: int) -> None:
    """Save a bank whose rows are told apart."""
    bank = LinearAverage(2, rows, T=0.3, momentum=0.25)
    bank.memory.copy_(numbered(rows))
    checkpoint.save({"bank": shard(bank, mesh).state_dict()}, checkpoint_id=folder)


def load_and_save(mesh: DeviceMesh, before: str, after: str, rows: int) -> dict[str, Any]:
    """Load a bank that other ranks saved, save it again, and return what this rank has."""
    bank = LinearAverage(2, rows, mesh=mesh)
    state = {"bank": bank.state_dict()}
    checkpoint.load(state, checkpoint_id=before)
    bank.load_state_dict(state["bank"])
    checkpoint.save({"bank": bank.state_dict()}, checkpoint_id=after)
    return _held(bank, mesh, rows)


def _held(bank: LinearAverage, mesh: DeviceMesh, rows: int) -> dict[str, Any]:
    assert isinstance(bank.memory, DTensor)
    local = bank.memory.to_local()
    assert local.untyped_storage().nbytes() <= 4 * 2 * -(-rows // mesh.size()), "the rows of others are held"
    same = torch.equal(local, numbered(rows)[rows_of(mesh, rows)])
    return {"same rows": same, "params": [round(value, 6) for value in bank.params.tolist()]}


def load_published(mesh: DeviceMesh, file: str, rows: int, how: str) -> dict[str, Any]:
    """Load a single file, as the published class saves it, into shards."""
    bank = LinearAverage(2, rows, mesh=mesh)
    if how == "load_state_dict":
        bank.load_state_dict(torch.load(file, mmap=True))
    else:
        first = mesh.get_local_rank() == 0
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(bank, torch.load(file) if first else {}, options=options)
    return _held(bank, mesh, rows)


def _one(mesh: DeviceMesh, call: Callable[[LinearAverage, Tensor, Tensor], object], **changed: Any) -> None:
    last = mesh.get_local_rank() == mesh.size() - 1
    bank = LinearAverage(3, 5, mesh=mesh)
    x, y = torch.randn(2, 3), torch.tensor([0, 4])
    for name, value in changed.items():
        if last:
            x, y = (value, y) if name == "x" else (x, value)
    call(bank, x, y)


def _several(bank: LinearAverage, x: Tensor, y: Tensor) -> object:
    first = torch.distributed.get_rank() == 0
    bank.params.fill_(0.5 if first else 0.25)
    return bank.update(x, y)


WRONG: dict[str, Callable[[DeviceMesh], object]] = {
    "logits in training": lambda mesh: _one(mesh, lambda bank, x, y: bank(x, y)),
    "logits in evaluation": lambda mesh: _one(mesh, lambda bank, x, y: bank.eval()(x, y)),
    "LinearAverageOp": lambda mesh: _one(mesh, lambda b, x, y: LinearAverageOp.apply(x, y, b.memory, b.params)),
    "the loss of one process": lambda mesh: _one(
        mesh, lambda b, x, y: InstanceDiscriminationLoss.apply(x, y, b.memory, 0.5)
    ),
    "loss, row past the bank": lambda mesh: _one(mesh, lambda b, x, y: b.loss(x, y), y=torch.tensor([0, 5])),
    "update, row past the bank": lambda mesh: _one(mesh, lambda b, x, y: b.update(x, y), y=torch.tensor([0, 5])),
    "update, other features": lambda mesh: _one(mesh, lambda b, x, y: b.update(x, y), x=torch.randn(2, 4)),
    "update, other momentum": lambda mesh: _one(mesh, _several),
    "sharded twice": lambda mesh: shard(LinearAverage(3, 5, mesh=mesh), mesh),
    "no bank": lambda mesh: shard(torch.nn.Linear(3, 5), mesh),
    "mesh of two dimensions": lambda mesh: shard(LinearAverage(3, 5), init_device_mesh("cpu", (2, mesh.size() // 2))),
    "state of another size": lambda mesh: LinearAverage(3, 5, mesh=mesh).load_state_dict(
        LinearAverage(3, 6).state_dict()
    ),
    "sharded state into a whole bank": lambda mesh: LinearAverage(3, 5).load_state_dict(
        LinearAverage(3, 5, mesh=mesh).state_dict()
    ),
}


def error_of(mesh: DeviceMesh, name: str) -> str:
    """Return the class and the words of the error that this rank gets."""
    try:
        WRONG[name](mesh)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
