"""The networks learn, in a loop like the one that their published code is trained with."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gradspec.nn import ShakeResNet
from nn.networks import MODULES, images


@pytest.mark.parametrize("name", ["resnet", pytest.param("resnext", marks=pytest.mark.slow)])
def test_one_step_lowers_the_loss(name: str) -> None:
    torch.manual_seed(0)
    network = MODULES[name][0]()
    x, y = images(8, 3, 8, 8), torch.arange(8) % 5
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()

    def loss() -> float:
        losses = []
        for seed in range(8):  # each draws other noise: the mean over a few of them is what a step should lower
            torch.manual_seed(seed)
            with torch.no_grad():
                losses.append(criterion(network(x), y).item())
        return sum(losses) / len(losses)

    before = loss()
    criterion(network(x), y).backward()
    optimizer.step()
    assert loss() < before


@pytest.mark.slow
def test_a_loop_with_cosine_steps_and_nesterov_momentum_fits_its_images() -> None:
    torch.manual_seed(0)
    epochs, device = 12, torch.device("cpu")
    model = ShakeResNet(depth=8, w_base=8, label=3).to(device)
    y = torch.arange(24) % 3
    x = 0.5 * images(24, 3, 16, 16)
    x[torch.arange(24), y] += 1.0  # the class is the brightest colour
    batches = list(zip(x.split(8), y.split(8), strict=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    losses = []
    for epoch in range(epochs):
        rate = 0.5 * 0.05 * (math.cos(math.pi * epoch / epochs) + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        model.train()
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        correct = sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in batches)
    assert losses[-1] < losses[0] / 2
    assert correct >= 22
