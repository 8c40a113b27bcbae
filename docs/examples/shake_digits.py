"""Train a small Shake-Shake network on handwritten digits, with and without shaking."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _record
import click
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from _digits import Digits, load_digits, shifted
from rich.console import Console
from rich.progress import Progress
from torch import Tensor, nn

from gradspec.functions import shake_shake
from gradspec.nn import ShakeBlock, ShakeResNet

BATCH = 64
LEARNING_RATE = 0.1
WEIGHT_DECAY = 1e-4
#: The names of the paper: how the forward pass weighs the branches, and how the backward pass does.
MODES = ("even-even", "shake-even", "shake-keep", "even-shake", "shake-shake")

EXAMPLES = """\b
Examples:
  python docs/examples/shake_digits.py --epochs 2 --seeds 1
  python docs/examples/shake_digits.py --mode even-even --mode shake-keep
  python docs/examples/shake_digits.py --out docs/records/examples/shake_digits.json
"""


class OtherMode(nn.Module):
    """A ShakeBlock whose branches are mixed in another mode of the paper than "shake-shake"."""

    def __init__(self, block: ShakeBlock, forward: str, backward: str) -> None:
        super().__init__()
        self.block, self.modes = block, {"forward": forward, "backward": backward}

    def forward(self, x: Tensor) -> Tensor:
        """Return the input, or its shortcut, plus the mix of the branches."""
        block, h = self.block, F.relu(x)
        mix = shake_shake(block.branch1(h), block.branch2(h), self.training, **self.modes)
        return mix + (x if block.shortcut is None else block.shortcut(x))


def build(mode: str, depth: int, width: int) -> ShakeResNet:
    """Return a network whose blocks mix their branches in one mode; its parameters do not depend on the mode."""
    network = ShakeResNet(depth, width, label=10)
    if mode != "shake-shake":
        for layer in (network.layer1, network.layer2, network.layer3):
            for i, block in enumerate(layer):
                layer[i] = OtherMode(block, *mode.split("-"))
    return network


def train(network: nn.Module, digits: Digits, *, epochs: int, seed: int) -> Iterator[dict[str, float]]:
    """Train, and yield after each epoch the loss and the error rate on both sets of images, in evaluation mode."""
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(
        network.parameters(), LEARNING_RATE, momentum=0.9, nesterov=True, weight_decay=WEIGHT_DECAY
    )
    steps = epochs * math.ceil(len(digits.train_y) / BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        network.train()
        for batch in torch.randperm(len(digits.train_y), generator=order).split(BATCH):
            optimizer.zero_grad()
            x = shifted(digits.train_x[batch], order)
            F.cross_entropy(network(x), digits.train_y[batch]).backward()
            optimizer.step()
            schedule.step()
        yield {
            **evaluate(network, "train", digits.train_x, digits.train_y),
            **evaluate(network, "test", digits.test_x, digits.test_y),
        }


@torch.no_grad()
def evaluate(network: nn.Module, name: str, x: Tensor, y: Tensor) -> dict[str, float]:
    """Return the mean loss and the share of wrong answers, in evaluation mode."""
    logits = network.eval()(x)
    wrong = (logits.argmax(1) != y).float().mean()
    return {f"{name}_loss": F.cross_entropy(logits, y).item(), f"{name}_error": wrong.item()}


@click.command(epilog=EXAMPLES)
@click.option("--epochs", type=click.IntRange(min=1), default=60, show_default=True, help="Passes over the images.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Networks of each mode.")
@click.option("--depth", default=8, show_default=True, help="6n + 2 layers.")
@click.option("--width", default=16, show_default=True, help="Channels of the first layer, an even number.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    default=("even-even", "shake-keep", "shake-shake"),
    show_default=True,
    help="Weights forward and backward; give it again for each mode.",
)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of torch.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write what was measured as JSON.")
def main(
    epochs: int, seeds: int, depth: int, width: int, modes: tuple[str, ...], threads: int, out: Path | None
) -> None:
    """Train a small Shake-Shake network on scikit-learn's digits, with and without shaking.

    Each seed gives the networks of all modes the same initial parameters and the same batches. Training uses 1,000
    images, each moved by up to a pixel; the error is that on 797 others. The same options give the same numbers.
    """
    _record.check_writable(out)
    torch.set_num_threads(threads)
    modes = tuple(dict.fromkeys(modes))
    try:
        build(modes[0], depth, width)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    digits = load_digits()
    runs: dict[str, list[list[dict[str, float]]]] = {mode: [] for mode in modes}
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=seeds * len(modes) * epochs)
        for seed in range(seeds):
            for mode in modes:
                progress.update(task, description=f"seed {seed}, {mode}")
                torch.manual_seed(seed)
                runs[mode].append([])
                for measured in train(build(mode, depth, width), digits, epochs=epochs, seed=seed):
                    runs[mode][-1].append(measured)
                    progress.advance(task)
    numbers = {mode: final(histories) for mode, histories in runs.items()}
    for mode in modes:
        rate = numbers[mode]["test_error"]
        click.echo(f"{mode:12} test error {rate['mean']:.2%} ({rate['low']:.2%} to {rate['high']:.2%})")
    if out:
        settings = {"epochs": epochs, "depth": depth, "width": width, "batch": BATCH, "learning_rate": LEARNING_RATE}
        record = {
            "name": "shake_digits",
            "what": "errors and losses by epoch of a small Shake-Shake network on scikit-learn's digits, by mode",
            "provenance": _record.provenance(seeds, "scikit-learn"),
            "settings": settings,
            "numbers": numbers,
            "figures": figures(runs),
        }
        _record.write(record, out)


def final(histories: list[list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the mean and the range over the seeds of what was measured after the last epoch."""
    return {name: _record.spread([history[-1][name] for history in histories]) for name in histories[0][-1]}


def figures(runs: dict[str, list[list[dict[str, float]]]]) -> dict[str, Any]:
    """Return the training curves: a line for each mode, a run for each seed."""

    def lines(name: str) -> dict[str, list[list[float]]]:
        return {mode: [[epoch[name] for epoch in history] for history in runs[mode]] for mode in runs}

    share = {"format": ".1%"}
    return {
        "test_error": _record.figure(
            "Error on test images", "wrong answers, test images", lines("test_error"), **share
        ),
        "train_error": _record.figure(
            "Error on training images", "wrong answers, training images", lines("train_error"), **share
        ),
        "test_loss": _record.figure(
            "Loss on test images", "cross-entropy, test images", lines("test_loss"), scale="log"
        ),
        "train_loss": _record.figure(
            "Loss on training images", "cross-entropy, training images", lines("train_loss"), scale="log"
        ),
    }


if __name__ == "__main__":
    main()
