r"""Fold what is fixed in evaluation into fewer convolutions, with the same output.

Batch norm is an affine map by then, so it joins the convolution before it:

.. math::

    \gamma\,\frac{W h - \mu}{\sqrt{\sigma^2 + \epsilon}} + b
    = (s W) h + (b - s \mu), \qquad s = \frac{\gamma}{\sqrt{\sigma^2 + \epsilon}}

Both branches weigh 1/2 by then, so a convolution of one and its twin in the other make one, by channels:

.. math::

    \begin{pmatrix} W_1 x \\ W_2 x \end{pmatrix} = \begin{pmatrix} W_1 \\ W_2 \end{pmatrix} x, \qquad
    \tfrac{1}{2} (W_1 h_1 + W_2 h_2)
    = \tfrac{1}{2} \begin{pmatrix} W_1 & W_2 \end{pmatrix} \begin{pmatrix} h_1 \\ h_2 \end{pmatrix}
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase


def folded(conv: nn.Conv2d, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Return the weight and the bias, in float64, of a bias-free convolution and the batch norm behind it.

    Raises:
        TypeError: `norm` is not a batch norm with running statistics.
    """
    if not isinstance(norm, _NormBase) or norm.running_mean is None or norm.running_var is None:
        raise TypeError(
            f"fuse_for_inference: a convolution is followed by {norm}, and only a batch norm with running statistics "
            f"folds into it. Evaluate the network as it is"
        )
    scale = (norm.running_var.double() + norm.eps).rsqrt() * norm.weight.double()
    weight = conv.weight.double() * scale[:, None, None, None]
    return weight, norm.bias.double() - norm.running_mean.double() * scale


def convolution(weight: Tensor, bias: Tensor, like: nn.Conv2d, groups: int = 1) -> nn.Conv2d:
    """Return a frozen convolution of these parameters, with the rest of another one; nothing is drawn."""
    fused = nn.Conv2d(
        weight.shape[1] * groups,
        weight.shape[0],
        (weight.shape[2], weight.shape[3]),
        stride=like.stride,  # type: ignore[arg-type]  # a pair, which torch types as a tuple of any length
        padding=like.padding,  # type: ignore[arg-type]
        groups=groups,
        device="meta",
    )
    for name, value in (("weight", weight), ("bias", bias)):
        setattr(fused, name, nn.Parameter(value.detach().to(like.weight.dtype), requires_grad=False))
    return fused


def fused_branches(branch1: nn.Sequential, branch2: nn.Sequential) -> list[nn.Conv2d]:
    """Return the convolutions of both branches, twin by twin: the last of them returns the mean of the branches."""
    twins = list(zip(_folded_pairs(branch1), _folded_pairs(branch2), strict=True))
    fused = []
    for place, ((conv, w1, b1), (_, w2, b2)) in enumerate(twins):
        if place == len(twins) - 1:
            fused.append(convolution(torch.cat((w1, w2), dim=1) / 2, (b1 + b2) / 2, conv))
            continue
        groups = conv.groups if place == 0 else 2 * conv.groups  # the first one's input is that of the block, shared
        fused.append(convolution(torch.cat((w1, w2)), torch.cat((b1, b2)), conv, groups))
    return fused


def _folded_pairs(branch: nn.Sequential) -> list[tuple[nn.Conv2d, Tensor, Tensor]]:
    return [
        (module, *folded(module, norm))
        for module, norm in zip(branch, list(branch)[1:], strict=False)
        if isinstance(module, nn.Conv2d)
    ]
