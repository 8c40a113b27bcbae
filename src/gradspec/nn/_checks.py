"""Refuse sizes that make no network, with the number that was given and one that would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

#: The strides of the three layers multiply to 4: below it, a map of one pixel is halved again.
SMALLEST_IMAGE = 4


def check_positive(owner: str, **sizes: int) -> None:
    """Refuse a size that is not an integer, or below 1.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is below 1.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"{owner}: {name} is {size!r}; write an integer of 1 or more")
        if size < 1:
            raise ValueError(f"{owner}: {name} is {size}; write 1 or more")


def check_stride(owner: str, in_ch: int, out_ch: int, stride: int) -> None:
    """Refuse a stride where the input is added to the output as it is.

    Raises:
        ValueError: a block of equal widths, hence without a shortcut, has a stride.
    """
    if in_ch == out_ch and stride != 1:
        raise ValueError(
            f"{owner}: stride is {stride} with in_ch = out_ch = {in_ch}; a block of equal widths adds its input "
            f"unchanged, so write stride=1, or an out_ch other than {in_ch}"
        )


def blocks_per_layer(owner: str, depth: int, convolutions: int) -> int:
    """Return the blocks in each of three layers, whose blocks have a third of `convolutions` each.

    Raises:
        ValueError: no whole number of blocks, 1 or more, has that depth.
    """
    blocks, rest = divmod(depth - 2, convolutions)
    if blocks < 1 or rest:
        below = max(blocks, 1) * convolutions + 2
        raise ValueError(
            f"{owner}: depth is {depth}, which is not {convolutions}n + 2 with n >= 1; "
            f"write {below} or {below + convolutions}, for example"
        )
    return blocks


def check_images(owner: str, x: Tensor) -> None:
    """Refuse what is not a batch of colour images, or has no pixels left after the strides.

    Raises:
        ValueError: `x` is not of shape (B, 3, H, W), or H or W is below 4.
    """
    if x.dim() != 4 or x.shape[1] != 3:
        raise ValueError(f"{owner}: the input has shape {tuple(x.shape)}; give images of shape (B, 3, H, W)")
    if x.shape[2] < SMALLEST_IMAGE or x.shape[3] < SMALLEST_IMAGE:
        raise ValueError(
            f"{owner}: the images are {x.shape[2]} x {x.shape[3]}, and the network halves both sides twice; "
            f"give at least {SMALLEST_IMAGE} x {SMALLEST_IMAGE}"
        )
