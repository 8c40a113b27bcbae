"""The networks of Shake-Shake and the modules that they are made of."""

from gradspec.nn._shake._block import ShakeBlock
from gradspec.nn._shake._block_spec import SHAKE_BLOCK, SHAKE_BOTTLE_NECK, SHORTCUT
from gradspec.nn._shake._bottle_neck import ShakeBottleNeck
from gradspec.nn._shake._network_spec import SHAKE_RESNET, SHAKE_RESNEXT
from gradspec.nn._shake._resnet import ShakeResNet
from gradspec.nn._shake._resnext import ShakeResNeXt
from gradspec.nn._shake._shortcut import Shortcut

__all__ = [
    "SHAKE_BLOCK",
    "SHAKE_BOTTLE_NECK",
    "SHAKE_RESNET",
    "SHAKE_RESNEXT",
    "SHORTCUT",
    "ShakeBlock",
    "ShakeBottleNeck",
    "ShakeResNeXt",
    "ShakeResNet",
    "Shortcut",
]
