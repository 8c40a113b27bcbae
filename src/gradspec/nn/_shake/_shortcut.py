"""Where a block changes width or resolution, its input takes this way round the branches."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from gradspec.nn._checks import check_positive
from gradspec.nn._shake._fused import FusedShortcut


class Shortcut(nn.Module):
    r"""Bring the input of a residual block to the width and resolution of its output.

    After a ReLU, one half of the output channels is a 1 x 1 convolution of every `stride`-th pixel, the other half
    that of the pixel one below and one to the right (zeros past the edge), so that a stride of 2 sees two of each
    four pixels; batch normalisation follows.

    Args:
        in_ch: channels of the input.
        out_ch: channels of the output, an even number: each half makes `out_ch / 2`.
        stride: every `stride`-th pixel of each side is kept.

    Shape:
        (B, in_ch, H, W) to (B, out_ch, ceil(H / stride), ceil(W / stride)), in the floating dtype of the parameters.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is below 1, or `out_ch` is odd.

    Example:
        >>> import torch
        >>> from gradspec.nn import Shortcut
        >>> Shortcut(16, 32, stride=2)(torch.ones(4, 16, 8, 8)).shape
        torch.Size([4, 32, 4, 4])

    References:
        X. Gastaldi, *Shake-Shake regularization*, 2017, section 2.1,
        `arXiv:1705.07485 <https://arxiv.org/abs/1705.07485>`__.
    """

    def __init__(self, in_ch: int, out_ch: int, stride: int) -> None:
        super().__init__()
        check_positive("Shortcut", in_ch=in_ch, out_ch=out_ch, stride=stride)
        if out_ch % 2:
            raise ValueError(f"Shortcut: out_ch is {out_ch}, and two paths share it evenly; write {out_ch + 1}")
        # The convolution strides over the pixels that the published class first copies with a pool of size 1.
        self.conv1 = nn.Conv2d(in_ch, out_ch // 2, 1, stride=stride, bias=False)
        self.conv2 = nn.Conv2d(in_ch, out_ch // 2, 1, stride=stride, bias=False)
        self.bn = nn.BatchNorm2d(out_ch)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input at the width and resolution of the block's output.

        Args:
            x: shape (B, in_ch, H, W).
        """
        h = F.relu(x)
        one_down_one_right = F.pad(h, (-1, 1, -1, 1))
        y: Tensor = self.bn(torch.cat((self.conv1(h), self.conv2(one_down_one_right)), dim=1))
        return y

    def fuse_for_inference(self) -> nn.Module:
        """Return a module that evaluates as this one: see :meth:`gradspec.nn.ShakeResNet.fuse_for_inference`."""
        return FusedShortcut(self.conv1, self.conv2, self.bn)
