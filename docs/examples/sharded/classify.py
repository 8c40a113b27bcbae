"""Train an encoder and a classifier whose classes are dealt out over the processes that torchrun starts."""

import time

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, zeros

from gradspec.functions import linear_cross_entropy

CLASSES, PIXELS, FEATURES, BATCH, STEPS = 1000, 32, 16, 64, 10


def main() -> None:
    torch.distributed.init_process_group("gloo")
    mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    torch.manual_seed(0)
    encoder = fully_shard(nn.Sequential(nn.Linear(PIXELS, 64), nn.ReLU(), nn.Linear(64, FEATURES)), mesh=mesh)
    weight = nn.Parameter(zeros(CLASSES, FEATURES, device_mesh=mesh, placements=[Shard(0)]))
    bias = nn.Parameter(zeros(CLASSES, device_mesh=mesh, placements=[Shard(0)]))
    optimizer = torch.optim.AdamW([*encoder.parameters(), weight, bias], 0.01)

    torch.manual_seed(1 + mesh.get_local_rank())  # each rank has a batch of its own
    nn.init.normal_(weight.detach().to_local(), std=0.1)
    images, target = torch.randn(BATCH, PIXELS), torch.randint(CLASSES, (BATCH,))
    for _ in range(STEPS):
        loss = linear_cross_entropy(encoder(images), weight, target, bias=bias)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    assert weight.grad.placements == (Shard(0),)
    torch.distributed.all_reduce(loss := loss.detach())
    if mesh.get_local_rank() == 0:
        print(f"loss {loss.item() / mesh.size():.3f}, {weight.to_local().shape[0]} classes of {CLASSES}")
    torch.distributed.destroy_process_group()
    time.sleep(1)  # gloo: see the page


if __name__ == "__main__":
    main()
