"""The Shake-Shake network of bottleneck blocks, "29 2x4x64d" in the paper."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from gradspec.nn._checks import blocks_per_layer, check_images, check_positive
from gradspec.nn._shake._bottle_neck import ShakeBottleNeck
from gradspec.nn._shake._fused import FusedNetwork
from gradspec.nn._shake._initialise import initialise

#: The published widths are whole multiples of it: it divides `w_base` by 64, and drops the rest.
WIDTH_UNIT = 64


class ShakeResNeXt(nn.Module):
    r"""Classify images with a ResNeXt whose blocks mix two branches at random (Shake-Shake).

    A 3 x 3 convolution to 64 channels, three layers of :class:`~gradspec.nn.ShakeBottleNeck` with 256, 512 and 1024
    channels (the second and third halve the resolution), ReLU, the mean over all pixels, a linear layer. The 3 x 3
    convolutions of the layers have `w_base * cardinary` channels, then twice and four times as many, in `cardinary`
    groups. The network that the paper calls "29 2x4x64d" is `ShakeResNeXt(29, 64, 4, 100)`.

    Args:
        depth: convolutions on the longest way, and two more: `9n + 2`, for n blocks in each layer.
        w_base: channels of a group in the first layer, a multiple of 64.
        cardinary: the cardinality, the number of groups (published spelling).
        label: the number of classes (published spelling).

    Shape:
        images (B, 3, H, W), H and W at least 4, to logits (B, label), in the floating dtype of the parameters.

    Raises:
        TypeError: a size is not an integer.
        ValueError: `depth` is not `9n + 2` with n >= 1, `w_base` is not a multiple of 64, a size is below 1; when
            called, the input is not of shape (B, 3, H, W), or the images are smaller than 4 x 4.

    Example:
        >>> import torch
        >>> from gradspec.nn import ShakeResNeXt
        >>> network = ShakeResNeXt(depth=11, w_base=64, cardinary=1, label=10).eval()
        >>> network(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Note:
        The published class rounds `w_base` down to a multiple of 64 without a word: 96 builds the network of 64, and
        48 divides by zero. It also returns four rows for an image of 64 x 64; this one returns one.

    References:
        X. Gastaldi, *Shake-Shake regularization*, 2017, `arXiv:1705.07485 <https://arxiv.org/abs/1705.07485>`__.
        S. Xie et al., *Aggregated residual transformations for deep neural networks*, 2017,
        `arXiv:1611.05431 <https://arxiv.org/abs/1611.05431>`__.
    """

    def __init__(self, depth: int, w_base: int, cardinary: int, label: int) -> None:
        super().__init__()
        check_positive("ShakeResNeXt", depth=depth, w_base=w_base, cardinary=cardinary, label=label)
        blocks = blocks_per_layer("ShakeResNeXt", depth, convolutions=9)
        if w_base % WIDTH_UNIT:
            nearest = max(w_base // WIDTH_UNIT, 1) * WIDTH_UNIT
            raise ValueError(
                f"ShakeResNeXt: w_base is {w_base}, which is no multiple of {WIDTH_UNIT}; "
                f"write {nearest} or {nearest + WIDTH_UNIT}, for example"
            )
        mid_ch = w_base * cardinary
        self.c_in = nn.Conv2d(3, 64, 3, padding=1)
        self.layer1 = _layer(blocks, 64, mid_ch, 256, cardinary, stride=1)
        self.layer2 = _layer(blocks, 256, 2 * mid_ch, 512, cardinary, stride=2)
        self.layer3 = _layer(blocks, 512, 4 * mid_ch, 1024, cardinary, stride=2)
        self.fc_out = nn.Linear(1024, label)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of each image.

        Args:
            x: shape (B, 3, H, W).
        """
        check_images("ShakeResNeXt", x)
        h = self.layer3(self.layer2(self.layer1(self.c_in(x))))
        logits: Tensor = self.fc_out(F.relu(h).mean(dim=(2, 3)))
        return logits

    def fuse_for_inference(self) -> nn.Module:
        """Return a module that evaluates as this one: see :meth:`gradspec.nn.ShakeResNet.fuse_for_inference`."""
        return FusedNetwork("ShakeResNeXt", self.c_in, (self.layer1, self.layer2, self.layer3), self.fc_out)


def _layer(blocks: int, in_ch: int, mid_ch: int, out_ch: int, cardinary: int, stride: int) -> nn.Sequential:
    first = ShakeBottleNeck(in_ch, mid_ch, out_ch, cardinary, stride)
    rest = (ShakeBottleNeck(out_ch, mid_ch, out_ch, cardinary) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)
