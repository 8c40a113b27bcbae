"""The initial parameters of both networks: He et al. 2015, in the mode that keeps the variance of gradients."""

from __future__ import annotations

import math

import torch
from torch import nn


@torch.no_grad()
def initialise(network: nn.Module) -> None:
    """Draw the weights of convolutions from N(0, 2 / (k k out_channels)); biases of the linear layer are 0.

    The linear layer's weight, and the bias of a convolution, stay as torch draws them: so does the published code.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
            module.weight.normal_(0, math.sqrt(2 / fan_out))
        elif isinstance(module, nn.Linear):
            module.bias.zero_()
