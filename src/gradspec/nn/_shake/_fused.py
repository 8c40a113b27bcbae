"""The modules that `fuse_for_inference` returns: they compute what a network does in evaluation, in less time."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from gradspec.nn._checks import check_images
from gradspec.nn._shake._fuse import convolution, folded, fused_branches


class Fused(nn.Module):
    """A module only for evaluation: its parameters are frozen, and `train()` raises."""

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation.

        Raises:
            RuntimeError: `mode` is true.
        """
        if mode:
            raise RuntimeError(
                f"{type(self).__name__}: batch norm is folded into the convolutions and the branches are one, so it "
                f"cannot be trained. Train the module that fuse_for_inference() was called on, and call it again"
            )
        return super().train(False)


class FusedShortcut(Fused):
    """A `Shortcut` whose batch norm is folded into its two convolutions."""

    def __init__(self, conv1: nn.Conv2d, conv2: nn.Conv2d, norm: nn.Module) -> None:
        super().__init__()
        both = nn.Conv2d(conv1.in_channels, 2 * conv1.out_channels, 1, bias=False, device="meta")
        both.weight = nn.Parameter(torch.cat((conv1.weight, conv2.weight)).detach())
        (w1, w2), (b1, b2) = (value.chunk(2) for value in folded(both, norm))
        self.conv1, self.conv2 = convolution(w1, b1, conv1), convolution(w2, b2, conv2)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Return the input at the width and resolution of the block's output."""
        h = F.relu(x)
        return torch.cat((self.conv1(h), self.conv2(F.pad(h, (-1, 1, -1, 1)))), dim=1)


class FusedBlock(Fused):
    """A `ShakeBlock` or a `ShakeBottleNeck` whose two branches are one, of twice the width."""

    def __init__(
        self, branch1: nn.Sequential, branch2: nn.Sequential, shortcut: nn.Module | None, *, opens_with_relu: bool
    ) -> None:
        super().__init__()
        self.opens_with_relu = opens_with_relu
        *inner, last = fused_branches(branch1, branch2)
        self.inner, self.last = nn.ModuleList(inner), last
        self.shortcut = shortcut
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Return the input, or its shortcut, plus the mean of the branches."""
        h = F.relu(x) if self.opens_with_relu else x
        for conv in self.inner:
            h = F.relu(conv(h), inplace=True)
        y: Tensor = self.last(h) + (x if self.shortcut is None else self.shortcut(x))
        return y


class FusedNetwork(Fused):
    """A `ShakeResNet` or a `ShakeResNeXt` of fused blocks, with the channels of each pixel side by side in memory."""

    def __init__(self, owner: str, c_in: nn.Conv2d, layers: Iterable[nn.Sequential], fc_out: nn.Linear) -> None:
        super().__init__()
        self.owner = owner
        self.c_in, self.fc_out = copy.deepcopy(c_in), copy.deepcopy(fc_out)
        blocks: Iterable[Any] = (block for layer in layers for block in layer)
        self.blocks = nn.Sequential(*(block.fuse_for_inference() for block in blocks))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # typed with its other arguments
        self.requires_grad_(False)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of each image, of shape (B, 3, H, W)."""
        check_images(self.owner, x)
        h = self.blocks(self.c_in(x.contiguous(memory_format=torch.channels_last)))
        logits: Tensor = self.fc_out(F.relu(h).mean(dim=(2, 3)))
        return logits
