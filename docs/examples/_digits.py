"""scikit-learn's digits as colour images, split so that the test images come from other writers."""

from __future__ import annotations

from dataclasses import dataclass

import click
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Generator, Tensor

#: The file is sorted by writer, and names none: a cut in its order keeps most writers on one side.
TRAINING_IMAGES = 1000


@dataclass(frozen=True, kw_only=True)
class Digits:
    """1,000 training images and 797 test images of 8 x 8 pixels, as (B, 3, 8, 8), with their digits as (B,)."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor


def load_digits() -> Digits:
    """Return the digits, with the mean and the deviation of the training pixels taken out of all."""
    try:
        from sklearn import datasets
    except ImportError:
        raise click.ClickException(
            "scikit-learn is not installed, and the images come with it: python -m pip install scikit-learn"
        ) from None
    found = datasets.load_digits()
    x = torch.tensor(found.images, dtype=torch.float32)
    y = torch.tensor(found.target, dtype=torch.int64)
    train = x[:TRAINING_IMAGES]
    x = ((x - train.mean()) / train.std())[:, None].expand(-1, 3, -1, -1).contiguous()
    return Digits(
        train_x=x[:TRAINING_IMAGES],
        train_y=y[:TRAINING_IMAGES],
        test_x=x[TRAINING_IMAGES:],
        test_y=y[TRAINING_IMAGES:],
    )


def shifted(x: Tensor, generator: Generator) -> Tensor:
    """Return each image moved by up to one pixel, at random, each way; its border is repeated.

    Args:
        x: shape (B, C, H, W).
        generator: where the moves come from.
    """
    batch, channels, height, width = x.shape
    down, right = torch.randint(3, (2, batch, 1), generator=generator)
    rows = (down + torch.arange(height))[:, None, :, None]
    columns = (right + torch.arange(width))[:, None, None, :]
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    return padded[torch.arange(batch)[:, None, None, None], torch.arange(channels)[:, None, None], rows, columns]
