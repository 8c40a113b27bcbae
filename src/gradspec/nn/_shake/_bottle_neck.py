"""The residual block with a grouped 3 x 3 convolution between two of 1 x 1, its two branches mixed at random."""

from __future__ import annotations

from torch import Tensor, nn

from gradspec.functions import shake_shake
from gradspec.nn._checks import check_positive, check_stride
from gradspec.nn._shake._fused import FusedBlock
from gradspec.nn._shake._shortcut import Shortcut


class ShakeBottleNeck(nn.Module):
    r"""Add to the input a random mix of two bottleneck branches (1 x 1, grouped 3 x 3, 1 x 1 convolutions).

    In training, :math:`y = s(x) + \alpha b_1(x) + (1 - \alpha) b_2(x)` with :math:`\alpha` uniform on [0, 1) for each
    image, and another number in its place on the way back; in evaluation both are 1/2. The shortcut :math:`s` is the
    identity where `in_ch` equals `out_ch`, and a :class:`~gradspec.nn.Shortcut` elsewhere. As published, no ReLU
    opens the branches.

    Args:
        in_ch: channels of the input.
        mid_ch: channels inside the branches, a multiple of `cardinary`.
        out_ch: channels of the output.
        cardinary: the cardinality of ResNeXt, the number of groups of the 3 x 3 convolution (published spelling).
        stride: that of the 3 x 3 convolution and of the shortcut.

    Shape:
        (B, in_ch, H, W) to (B, out_ch, ceil(H / stride), ceil(W / stride)), in the floating dtype of the parameters.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is below 1, `mid_ch` is not a multiple of `cardinary`, `out_ch` is odd where a shortcut is
            needed, or a block of equal widths has a stride.

    Example:
        >>> import torch
        >>> from gradspec.nn import ShakeBottleNeck
        >>> block = ShakeBottleNeck(16, 8, 32, cardinary=4, stride=2)
        >>> block(torch.ones(4, 16, 8, 8)).shape
        torch.Size([4, 32, 4, 4])

    References:
        X. Gastaldi, *Shake-Shake regularization*, 2017, `arXiv:1705.07485 <https://arxiv.org/abs/1705.07485>`__.
        S. Xie et al., *Aggregated residual transformations for deep neural networks*, 2017,
        `arXiv:1611.05431 <https://arxiv.org/abs/1611.05431>`__.
    """

    def __init__(self, in_ch: int, mid_ch: int, out_ch: int, cardinary: int, stride: int = 1) -> None:
        super().__init__()
        check_positive("ShakeBottleNeck", in_ch=in_ch, mid_ch=mid_ch, out_ch=out_ch, cardinary=cardinary, stride=stride)
        check_stride("ShakeBottleNeck", in_ch, out_ch, stride)
        if mid_ch % cardinary:
            raise ValueError(
                f"ShakeBottleNeck: mid_ch is {mid_ch}, which {cardinary} groups (cardinary) cannot share evenly; "
                f"write {mid_ch // cardinary * cardinary + cardinary}"
            )
        # A plain attribute where it is None: a registered None would swallow any key below it.
        self.shortcut = None if in_ch == out_ch else Shortcut(in_ch, out_ch, stride)
        self.branch1 = _branch(in_ch, mid_ch, out_ch, cardinary, stride)
        self.branch2 = _branch(in_ch, mid_ch, out_ch, cardinary, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input, or its shortcut, plus the mix of the branches.

        Args:
            x: shape (B, in_ch, H, W).
        """
        mix = shake_shake(self.branch1(x), self.branch2(x), self.training)
        y: Tensor = mix + (x if self.shortcut is None else self.shortcut(x))
        return y

    def fuse_for_inference(self) -> nn.Module:
        """Return a module that evaluates as this one: see :meth:`gradspec.nn.ShakeResNet.fuse_for_inference`."""
        shortcut = None if self.shortcut is None else self.shortcut.fuse_for_inference()
        return FusedBlock(self.branch1, self.branch2, shortcut, opens_with_relu=False)


def _branch(in_ch: int, mid_ch: int, out_ch: int, cardinary: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_ch, mid_ch, 1, bias=False),
        nn.BatchNorm2d(mid_ch),
        nn.ReLU(),
        nn.Conv2d(mid_ch, mid_ch, 3, padding=1, stride=stride, groups=cardinary, bias=False),
        nn.BatchNorm2d(mid_ch),
        nn.ReLU(),
        nn.Conv2d(mid_ch, out_ch, 1, bias=False),
        nn.BatchNorm2d(out_ch),
    )
