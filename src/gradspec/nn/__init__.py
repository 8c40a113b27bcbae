"""The documented networks and the modules that they are made of, under their published names."""

from gradspec.nn._shake_block import ShakeBlock
from gradspec.nn._shake_bottle_neck import ShakeBottleNeck
from gradspec.nn._shake_resnet import ShakeResNet
from gradspec.nn._shake_resnext import ShakeResNeXt
from gradspec.nn._shortcut import Shortcut

__all__ = [
    "ShakeBlock",
    "ShakeBottleNeck",
    "ShakeResNeXt",
    "ShakeResNet",
    "Shortcut",
]
