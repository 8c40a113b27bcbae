"""Learn to embed handwritten digits without their labels, with a memory bank, and see what neighbours the space has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _record
import click
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from _digits import Digits, load_digits
from _ranks import Ranks, ranks
from rich.console import Console
from rich.progress import Progress
from torch import Generator, Tensor, nn

from gradspec.nn import LinearAverage, nearest_neighbour_scores

BATCH = 100
LEARNING_RATE = 0.003
WEIGHT_DECAY = 1e-3
#: The temperature of the votes, as published.
TAU = 0.07
#: How many neighbours vote: the published number, and fewer.
NEIGHBOURS = (5, 20, 200)

EXAMPLES = """\b
Examples:
  python docs/examples/instance_discrimination.py --epochs 2 --seeds 1
  python docs/examples/instance_discrimination.py --temperature 0.2
  python docs/examples/instance_discrimination.py --out docs/records/examples/instance_discrimination.json
  torchrun --nproc-per-node 2 docs/examples/instance_discrimination.py --epochs 2 --seeds 1
"""


class Encoder(nn.Module):
    """Three convolutions, the mean over all pixels, a linear layer: an embedding of norm 1 for each image."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(_convolution(3, 32, 1), _convolution(32, 64, 2), _convolution(64, 128, 2))
        self.linear = nn.Linear(128, features)

    def forward(self, x: Tensor) -> Tensor:
        """Return shape (B, features) for images of shape (B, 3, H, W)."""
        return F.normalize(self.linear(self.convolutions(x).mean(dim=(2, 3))))


def _convolution(in_ch: int, out_ch: int, stride: int) -> nn.Sequential:
    layer = nn.Conv2d(in_ch, out_ch, 3, padding=1, stride=stride, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(out_ch), nn.ReLU())


def turned(x: Tensor, generator: Generator) -> Tensor:
    """Return each image turned by up to 14 degrees, scaled and slanted by up to 15 %, and moved by up to one pixel.

    Args:
        x: shape (B, C, H, W).
        generator: where the changes come from.
    """

    def between(bound: float) -> Tensor:
        return (2 * torch.rand(len(x), generator=generator) - 1) * bound

    angle, size, slant = between(0.25), 1 + between(0.15), between(0.15)
    right, down = between(2 / x.shape[3]), between(2 / x.shape[2])  # the grid has its edges at -1 and 1
    first = torch.stack((angle.cos() * size, slant - angle.sin() * size, right), dim=1)
    second = torch.stack((angle.sin() * size, angle.cos() * size, down), dim=1)
    grid = F.affine_grid(torch.stack((first, second), dim=1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def train(
    encoder: Encoder, bank: LinearAverage, images: Tensor, *, epochs: int, seed: int, here: Ranks
) -> Iterator[float]:
    """Train without labels, and yield the mean loss of each epoch: each image is a class of its own."""
    parallel = here.parallel(encoder)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(encoder.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * math.ceil(len(images) / BATCH))
    for _ in range(epochs):
        encoder.train()
        losses = []
        for y in torch.randperm(len(images), generator=generator).split(BATCH):
            x, y = here.own(turned(images[y], generator)), here.own(y)
            x = parallel(x)
            loss = bank.loss(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bank.update(x, y)
            losses.append(here.mean(loss))
        yield sum(losses) / len(losses)


@torch.no_grad()
def accuracy(embed: Callable[[Tensor], Tensor], digits: Digits) -> dict[int, float]:
    """Return, for each k, the share of test images whose k nearest training images vote for the right digit."""
    keys, queries = embed(digits.train_x), embed(digits.test_x)
    found = {}
    for k in NEIGHBOURS:
        scores = nearest_neighbour_scores(queries, keys, digits.train_y, classes=10, k=k, tau=TAU)
        found[k] = (scores.argmax(1) == digits.test_y).float().mean().item()
    return found


def pixels(x: Tensor) -> Tensor:
    """Return the pixels of an image as its embedding, of norm 1."""
    return F.normalize(x[:, 0].flatten(1))


@click.command(epilog=EXAMPLES)
@click.option("--epochs", type=click.IntRange(min=1), default=30, show_default=True, help="Passes over the images.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Networks to train.")
@click.option("--features", type=click.IntRange(min=1), default=64, show_default=True, help="Numbers in an embedding.")
@click.option("--temperature", default=0.07, show_default=True, help="T of the loss, above 0.")
@click.option("--momentum", default=0.5, show_default=True, help="Share of the old row in the new one, from 0 to 1.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of torch.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write what was measured as JSON.")
def main(
    epochs: int, seeds: int, features: int, temperature: float, momentum: float, threads: int, out: Path | None
) -> None:
    """Embed scikit-learn's digits without their labels, by instance discrimination with a memory bank.

    Training uses 1,000 images, each turned, scaled and moved a little, and no label. After each epoch the labels of
    those images vote on 797 others: each test image goes to the digit of its nearest neighbours in the space. The
    same vote on the raw pixels is the number to beat. The same options give the same numbers.

    Under torchrun each process has a part of every batch, and of the memory bank.
    """
    _record.check_writable(out)
    torch.set_num_threads(threads)
    try:
        LinearAverage(features, 1, T=temperature, momentum=momentum)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    digits = load_digits()
    raw = accuracy(pixels, digits)
    by_seed: list[list[dict[int, float]]] = []
    losses: list[list[float]] = []
    with ranks() as here, Progress(console=Console(stderr=True), disable=here.rank > 0) as progress:
        task = progress.add_task("training", total=seeds * epochs)
        for seed in range(seeds):
            progress.update(task, description=f"seed {seed}")
            torch.manual_seed(seed)
            encoder = Encoder(features)
            bank = here.deal(LinearAverage(features, len(digits.train_y), T=temperature, momentum=momentum))
            by_seed.append([accuracy(encoder.eval(), digits)])
            losses.append([])
            for loss in train(encoder, bank, digits.train_x, epochs=epochs, seed=seed, here=here):
                losses[-1].append(loss)
                by_seed[-1].append(accuracy(encoder.eval(), digits))
                progress.advance(task)
    if here.rank > 0:
        return
    histories = {k: [[measured[k] for measured in history] for history in by_seed] for k in NEIGHBOURS}
    numbers = {f"k{k}": compared(raw[k], histories[k]) for k in NEIGHBOURS}
    for k in NEIGHBOURS:
        after, before = numbers[f"k{k}"]["embedding"], numbers[f"k{k}"]["untrained"]
        click.echo(
            f"{k:3} neighbours: raw pixels {raw[k]:.1%}, untrained network {before['mean']:.1%}, "
            f"embedding {after['mean']:.1%} ({after['low']:.1%} to {after['high']:.1%})"
        )
    if out:
        settings = {"epochs": epochs, "features": features, "temperature": temperature, "momentum": momentum}
        record = {
            "name": "instance_discrimination",
            "what": "accuracy of neighbours in a space learnt without labels, by epoch, on scikit-learn's digits",
            "provenance": _record.provenance(seeds, "scikit-learn"),
            "settings": {**settings, "batch": BATCH, "learning_rate": LEARNING_RATE, "tau": TAU},
            "numbers": numbers,
            "figures": figures(raw, histories, losses),
        }
        _record.write(record, out)


def compared(raw: float, histories: list[list[float]]) -> dict[str, Any]:
    """Return the accuracy of the raw pixels, and that of the networks before and after training."""
    return {
        "raw": round(raw, 6),
        "untrained": _record.spread([history[0] for history in histories]),
        "embedding": _record.spread([history[-1] for history in histories]),
    }


def figures(
    raw: dict[int, float], histories: dict[int, list[list[float]]], losses: list[list[float]]
) -> dict[str, Any]:
    """Return the accuracy by epoch, for each number of neighbours, and the loss."""
    made = {"loss": _record.figure("Loss of instance discrimination", "loss, training", {"loss": losses})}
    for k in NEIGHBOURS:
        lines = {"embedding": histories[k], "raw pixels": [[raw[k]] * len(histories[k][0])]}
        title = f"Accuracy of {k} neighbours on test images"
        made[f"accuracy_k{k}"] = _record.figure(title, "right answers, test images", lines, first=0, format=".1%")
    return made


if __name__ == "__main__":
    main()
