"""Small networks and batches that the tests of this folder share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from gradspec.nn import ShakeBlock, ShakeBottleNeck, ShakeResNet, ShakeResNeXt, Shortcut

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

#: By name in words: how to build each module, and an input that it takes.
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "shortcut": (lambda: Shortcut(4, 6, 2), (3, 4, 8, 8)),
    "shortcut without stride": (lambda: Shortcut(4, 6, 1), (3, 4, 8, 8)),
    "equal block": (lambda: ShakeBlock(4, 4), (3, 4, 8, 8)),
    "widening block": (lambda: ShakeBlock(4, 6, 2), (3, 4, 8, 8)),
    "equal bottleneck": (lambda: ShakeBottleNeck(4, 6, 4, 3), (3, 4, 8, 8)),
    "widening bottleneck": (lambda: ShakeBottleNeck(4, 6, 8, 3, 2), (3, 4, 8, 8)),
    "resnet": (lambda: ShakeResNet(14, 4, 5), (3, 3, 16, 16)),
    "resnext": (lambda: ShakeResNeXt(11, 64, 2, 5), (3, 3, 8, 8)),
}
#: The same as parameters of a test: the largest network, made of the bottlenecks above it, in the slow tier.
PARAMETERS = [pytest.param(name, marks=[pytest.mark.slow] if name == "resnext" else []) for name in MODULES]


def images(*shape: int, seed: int = 0) -> Tensor:
    """Return standard normal numbers of a shape, the same at each call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_unused_shortcuts(network: nn.Module) -> dict[str, Tensor]:
    """Return a network's state with what the published class adds to it: a shortcut in each block of equal widths."""
    state = dict(network.state_dict())
    for name, block in network.named_modules():
        if isinstance(block, ShakeBlock) and block.shortcut is None:
            channels = block.branch1[1].in_channels
            unused = Shortcut(channels, channels, 1)
            prefix = f"{name}.shortcut." if name else "shortcut."
            state |= {prefix + key: value for key, value in unused.state_dict().items()}
    return state
