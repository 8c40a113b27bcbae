"""The residual block of two 3 x 3 convolutions whose two branches are mixed at random."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from gradspec.functions import shake_shake
from gradspec.nn._checks import check_positive, check_stride
from gradspec.nn._shake._fused import FusedBlock
from gradspec.nn._shake._shortcut import Shortcut

#: What a published checkpoint holds, for each block of equal widths, of a shortcut that is never called.
UNUSED_SHORTCUT = (
    "conv1.weight",
    "conv2.weight",
    "bn.weight",
    "bn.bias",
    "bn.running_mean",
    "bn.running_var",
    "bn.num_batches_tracked",
)


class ShakeBlock(nn.Module):
    r"""Add to the input a random mix of two branches (ReLU, 3 x 3 convolution, batch norm, and the same again).

    In training, :math:`y = s(x) + \alpha b_1(x) + (1 - \alpha) b_2(x)` with :math:`\alpha` uniform on [0, 1) for each
    image, and another number in its place on the way back; in evaluation both are 1/2. The shortcut :math:`s` is the
    identity where `in_ch` equals `out_ch`, and a :class:`~gradspec.nn.Shortcut` elsewhere.

    Args:
        in_ch: channels of the input.
        out_ch: channels of the output.
        stride: that of the first convolution of each branch and of the shortcut.

    Shape:
        (B, in_ch, H, W) to (B, out_ch, ceil(H / stride), ceil(W / stride)), in the floating dtype of the parameters.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is below 1, `out_ch` is odd where a shortcut is needed, or a block of equal widths has a
            stride.

    Example:
        >>> import torch
        >>> from gradspec.nn import ShakeBlock
        >>> ShakeBlock(16, 32, stride=2)(torch.ones(4, 16, 8, 8)).shape
        torch.Size([4, 32, 4, 4])
        >>> ShakeBlock(16, 16).shortcut is None
        True

    Note:
        The published block of equal widths carries a shortcut that it never calls. This one does not, and drops just
        those keys from a checkpoint that has them, so that it loads with `strict=True`. The ReLU that opens both
        branches is computed once, in the block: a branch called by itself starts at its convolution.

    References:
        X. Gastaldi, *Shake-Shake regularization*, 2017, `arXiv:1705.07485 <https://arxiv.org/abs/1705.07485>`__.
    """

    def __init__(self, in_ch: int, out_ch: int, stride: int = 1) -> None:
        super().__init__()
        check_positive("ShakeBlock", in_ch=in_ch, out_ch=out_ch, stride=stride)
        check_stride("ShakeBlock", in_ch, out_ch, stride)
        # A plain attribute where it is None: a registered None would swallow any key below it.
        self.shortcut = None if in_ch == out_ch else Shortcut(in_ch, out_ch, stride)
        self.branch1 = _branch(in_ch, out_ch, stride)
        self.branch2 = _branch(in_ch, out_ch, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input, or its shortcut, plus the mix of the branches.

        Args:
            x: shape (B, in_ch, H, W).
        """
        h = F.relu(x)
        mix = shake_shake(self.branch1(h), self.branch2(h), self.training)
        y: Tensor = mix + (x if self.shortcut is None else self.shortcut(x))
        return y

    def fuse_for_inference(self) -> nn.Module:
        """Return a module that evaluates as this one: see :meth:`gradspec.nn.ShakeResNet.fuse_for_inference`."""
        shortcut = None if self.shortcut is None else self.shortcut.fuse_for_inference()
        return FusedBlock(self.branch1, self.branch2, shortcut, opens_with_relu=True)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        if self.shortcut is None:
            for name in UNUSED_SHORTCUT:
                state_dict.pop(f"{prefix}shortcut.{name}", None)  # torch hands each module a dictionary of its own
        super()._load_from_state_dict(state_dict, prefix, *args)


def _branch(in_ch: int, out_ch: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Identity(),  # the block's ReLU stood here; the keys of a checkpoint count it
        nn.Conv2d(in_ch, out_ch, 3, padding=1, stride=stride, bias=False),
        nn.BatchNorm2d(out_ch),
        nn.ReLU(),
        nn.Conv2d(out_ch, out_ch, 3, padding=1, bias=False),
        nn.BatchNorm2d(out_ch),
    )
