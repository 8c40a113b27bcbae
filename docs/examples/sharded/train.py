"""Train an encoder against a memory bank whose rows are dealt out over the processes that torchrun starts."""

import sys
import time
from pathlib import Path

import torch
from torch.distributed import checkpoint
from torch.nn.functional import normalize
from torch.nn.parallel import DistributedDataParallel

from gradspec.nn import LinearAverage

IMAGES, PIXELS, FEATURES, BATCH, STEPS = 1000, 32, 16, 64, 10


def main(folder: Path) -> None:
    torch.distributed.init_process_group("gloo")
    mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    torch.manual_seed(0)
    images = torch.randn(IMAGES, PIXELS)  # in earnest, each rank reads only its part of each batch
    encoder = DistributedDataParallel(torch.nn.Linear(PIXELS, FEATURES))
    bank = LinearAverage(FEATURES, IMAGES, mesh=mesh)
    optimizer = torch.optim.SGD(encoder.parameters(), 0.1)

    state = {"encoder": encoder.module.state_dict(), "bank": bank.state_dict()}
    if folder.exists():  # saved by any number of ranks
        checkpoint.load(state, checkpoint_id=folder)
        encoder.module.load_state_dict(state["encoder"])
        bank.load_state_dict(state["bank"])

    for _ in range(STEPS):
        y = torch.randint(IMAGES, (BATCH,)).tensor_split(mesh.size())[mesh.get_local_rank()]
        x = normalize(encoder(images[y]))
        loss = bank.loss(x, y)  # of the rows of this rank, against the rows of all
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.update(x, y)  # each row moves on the rank that holds it

    state = {"encoder": encoder.module.state_dict(), "bank": bank.state_dict()}
    checkpoint.save(state, checkpoint_id=folder)
    torch.distributed.all_reduce(loss := loss.detach())
    if mesh.get_local_rank() == 0:
        print(f"loss {loss.item() / mesh.size():.3f}, {bank.memory.to_local().shape[0]} rows of {bank.memory.shape[0]}")
    torch.distributed.destroy_process_group()
    time.sleep(1)  # gloo: see the page


if __name__ == "__main__":
    main(Path(sys.argv[1]))
