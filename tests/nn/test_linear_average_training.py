"""A training loop as the published code is used in, in our own words: nothing in it knows whose class it is."""

from __future__ import annotations

import torch
from torch import nn

from gradspec.nn import LinearAverage


class Numbered(torch.utils.data.Dataset):
    """Points around four centres; each sample comes with its own number, which is its row of the bank."""

    def __init__(self, size: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.arange(size) % 4
        centres = 6 * torch.eye(4).repeat(1, 2)
        self.points = centres[self.labels] + torch.randn(size, 8, generator=generator)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        return self.points[index], self.labels[index], index


class Embedding(nn.Module):
    def __init__(self, low_dim: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, low_dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.body(x), dim=1)


def test_a_loop_over_instances_learns_and_every_row_follows_its_embedding() -> None:
    torch.manual_seed(0)
    data = Numbered(64)
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    model = Embedding(low_dim=8)
    lemniscate = LinearAverage(8, len(data), 0.07, 0.5)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4)
    iter_size, losses = 2, []

    model.train()
    for _ in range(30):
        total = 0.0
        optimizer.zero_grad()
        for i, (inputs, _, index) in enumerate(loader):
            feature = model(inputs)
            output = lemniscate(feature, index)
            loss = criterion(output, index) / iter_size
            loss.backward()
            total += loss.item() * iter_size
            if (i + 1) % iter_size == 0:
                optimizer.step()
                optimizer.zero_grad()
        losses.append(total / len(loader))

    model.eval()
    with torch.no_grad():
        features = model(data.points)
        similarity = features @ lemniscate.memory.t()
    similarity.fill_diagonal_(-1)
    nearest = data.labels[similarity.argmax(1)]
    torch.testing.assert_close(lemniscate.memory.norm(dim=1), torch.ones(64))
    assert (features * lemniscate.memory).sum(1).mean() > 0.9
    assert losses[-1] < 0.8 * losses[0]
    assert (nearest == data.labels).float().mean() > 0.8


def test_an_evaluation_loop_leaves_the_bank_alone() -> None:
    torch.manual_seed(0)
    data, model, lemniscate = Numbered(16), Embedding(low_dim=8), LinearAverage(8, 16)
    start = lemniscate.memory.clone()
    model.eval()
    lemniscate.eval()
    # A saliency map: a backward pass in evaluation mode, which the published class answers by moving its bank.
    points = data.points.clone().requires_grad_()
    lemniscate(model(points), torch.arange(16)).max(1).values.sum().backward()

    assert points.grad is not None
    assert torch.equal(lemniscate.memory, start)
