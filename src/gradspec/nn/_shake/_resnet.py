"""The Shake-Shake network of 3 x 3 blocks, "26 2x96d" and its kin in the paper."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from gradspec.nn._checks import blocks_per_layer, check_images, check_positive
from gradspec.nn._shake._block import ShakeBlock
from gradspec.nn._shake._fused import FusedNetwork
from gradspec.nn._shake._initialise import initialise


class ShakeResNet(nn.Module):
    r"""Classify images with a residual network whose blocks mix two branches at random (Shake-Shake).

    A 3 x 3 convolution to 16 channels, three layers of :class:`~gradspec.nn.ShakeBlock` with `w_base`, `2 w_base` and
    `4 w_base` channels (the second and third halve the resolution), ReLU, the mean over all pixels, a linear layer.
    The network that the paper calls "26 2x96d" is `ShakeResNet(26, 96, 10)`.

    Args:
        depth: convolutions on the longest way, and the linear layer: `6n + 2`, for n blocks in each layer.
        w_base: channels of the first layer, an even number.
        label: the number of classes (published spelling).

    Shape:
        images (B, 3, H, W), H and W at least 4, to logits (B, label), in the floating dtype of the parameters.

    Raises:
        TypeError: a size is not an integer.
        ValueError: `depth` is not `6n + 2` with n >= 1, `w_base` is odd, a size is below 1; when called, the input is
            not of shape (B, 3, H, W), or the images are smaller than 4 x 4.

    Example:
        >>> import torch
        >>> from gradspec.nn import ShakeResNet
        >>> network = ShakeResNet(depth=8, w_base=16, label=10).eval()
        >>> network(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Note:
        The published head averages windows of 8 x 8, which is the mean over all pixels of a 32 x 32 image only; for
        two images of 64 x 64 it returns eight rows. This one returns a row for each image.

    References:
        X. Gastaldi, *Shake-Shake regularization*, 2017, `arXiv:1705.07485 <https://arxiv.org/abs/1705.07485>`__.
    """

    def __init__(self, depth: int, w_base: int, label: int) -> None:
        super().__init__()
        check_positive("ShakeResNet", depth=depth, w_base=w_base, label=label)
        blocks = blocks_per_layer("ShakeResNet", depth, convolutions=6)
        if w_base % 2:
            raise ValueError(
                f"ShakeResNet: w_base is {w_base}, and the two paths of a shortcut share it; write {w_base + 1}"
            )
        self.c_in = nn.Conv2d(3, 16, 3, padding=1)
        self.layer1 = _layer(blocks, 16, w_base, stride=1)
        self.layer2 = _layer(blocks, w_base, 2 * w_base, stride=2)
        self.layer3 = _layer(blocks, 2 * w_base, 4 * w_base, stride=2)
        self.fc_out = nn.Linear(4 * w_base, label)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of each image.

        Args:
            x: shape (B, 3, H, W).
        """
        check_images("ShakeResNet", x)
        h = self.layer3(self.layer2(self.layer1(self.c_in(x))))
        logits: Tensor = self.fc_out(F.relu(h).mean(dim=(2, 3)))
        return logits

    def fuse_for_inference(self) -> nn.Module:
        """Return a new module with the output of this one in evaluation, in fewer convolutions.

        Batch norm is folded into the convolutions, and the two branches are stacked into one of twice the width: the
        same numbers to about 1e-5 in float32, in less time. The copy shares no memory with this module and does not
        follow it: call again after training or loading a state. Its `state_dict` has keys of its own. A block fuses its
        branches and its shortcut, and a shortcut its batch norm.

        Returns:
            A module in evaluation, with frozen parameters; a gradient still flows to its input.

        Raises:
            TypeError: a convolution is followed by something else than a batch norm with running statistics.
            RuntimeError: later, when `train()` is called on what is returned.

        Example:
            >>> import torch
            >>> from gradspec.nn import ShakeResNet
            >>> network = ShakeResNet(8, 4, 10).eval()
            >>> x = torch.ones(2, 3, 8, 8)
            >>> bool(torch.allclose(network.fuse_for_inference()(x), network(x), rtol=1e-5, atol=1e-5))
            True
        """
        return FusedNetwork("ShakeResNet", self.c_in, (self.layer1, self.layer2, self.layer3), self.fc_out)


def _layer(blocks: int, in_ch: int, out_ch: int, stride: int) -> nn.Sequential:
    first = ShakeBlock(in_ch, out_ch, stride)
    return nn.Sequential(first, *(ShakeBlock(out_ch, out_ch) for _ in range(blocks - 1)))
