"""A training that saves its bank, for torchrun or by itself: it kills or stops ranks where it is told to.

    python faults.py FOLDER STEPS SECONDS FAULTS

FAULTS is JSON: a list of [rank, step, place, signal], each of which happens once; the group gives up after SECONDS.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn
from torch.distributed import checkpoint
from torch.nn.functional import normalize
from torch.nn.parallel import DistributedDataParallel

from gradspec.nn import LinearAverage

ROWS, FEATURES, BATCH = 13, 4, 5
#: Where in a step a rank is killed.
PLACES = ("before the loss", "before the backward pass", "before the update", "before the checkpoint", "after it")


def main(folder: Path, steps: int, seconds: float, faults: list[list[object]]) -> None:
    """Train from the last checkpoint to the end, and save the rows of each rank."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=seconds))
    rank = torch.distributed.get_rank()
    mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    torch.manual_seed(0)
    data, encoder = torch.randn(ROWS, 3), DistributedDataParallel(nn.Linear(3, FEATURES))
    bank = LinearAverage(FEATURES, ROWS, mesh=mesh)
    optimizer = torch.optim.SGD(encoder.parameters(), 0.1)
    latest, first = folder / "latest", 0
    if latest.exists():
        first = int(latest.read_text())
        state = {"encoder": encoder.state_dict(), "bank": bank.state_dict()}
        checkpoint.load(state, checkpoint_id=folder / f"{first}")
        encoder.load_state_dict(state["encoder"])
        bank.load_state_dict(state["bank"])

    def here(step: int, place: str) -> None:
        for number, (*when, name) in enumerate(faults):
            happened = folder / f"fault{number}"
            if when == [rank, step, place] and not happened.exists():
                happened.touch()
                os.kill(os.getpid(), getattr(signal, str(name)))

    for step in range(first, steps):
        # What a step draws depends on its number alone: a step that is taken again is the same step.
        y = torch.randint(ROWS, (2, BATCH), generator=torch.Generator().manual_seed(step))[rank]
        here(step, PLACES[0])
        x = normalize(encoder(data[y]))
        loss = bank.loss(x, y)
        here(step, PLACES[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        here(step, PLACES[2])
        bank.update(x, y)
        here(step, PLACES[3])
        checkpoint.save(
            {"encoder": encoder.state_dict(), "bank": bank.state_dict()}, checkpoint_id=folder / f"{step + 1}"
        )
        if rank == 0:
            (folder / "new").write_text(f"{step + 1}")
            (folder / "new").replace(latest)  # all or nothing
        here(step, PLACES[4])
    torch.save(bank.memory.to_local(), folder / f"rank{rank}.pt")  # type: ignore[attr-defined]
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), json.loads(sys.argv[4]))
