"""The documented networks and the modules that they are made of, under their published names."""

from gradspec.nn._memory_bank import LINEAR_AVERAGE, LinearAverage, nearest_neighbour_scores, shard
from gradspec.nn._shake import (
    SHAKE_BLOCK,
    SHAKE_BOTTLE_NECK,
    SHAKE_RESNET,
    SHAKE_RESNEXT,
    SHORTCUT,
    ShakeBlock,
    ShakeBottleNeck,
    ShakeResNet,
    ShakeResNeXt,
    Shortcut,
)

#: The specs, in the order of the site.
MODULES = (SHAKE_RESNET, SHAKE_RESNEXT, SHAKE_BLOCK, SHAKE_BOTTLE_NECK, SHORTCUT, LINEAR_AVERAGE)

__all__ = [
    "LINEAR_AVERAGE",
    "MODULES",
    "SHAKE_BLOCK",
    "SHAKE_BOTTLE_NECK",
    "SHAKE_RESNET",
    "SHAKE_RESNEXT",
    "SHORTCUT",
    "LinearAverage",
    "ShakeBlock",
    "ShakeBottleNeck",
    "ShakeResNeXt",
    "ShakeResNet",
    "Shortcut",
    "nearest_neighbour_scores",
    "shard",
]
