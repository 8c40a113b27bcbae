"""The documented networks and the modules that they are made of, under their published names."""

from gradspec.nn._linear_average import LinearAverage
from gradspec.nn._linear_average_promise import LINEAR_AVERAGE
from gradspec.nn._nearest_neighbours import nearest_neighbour_scores
from gradspec.nn._shake_block import ShakeBlock
from gradspec.nn._shake_block_promise import SHAKE_BLOCK, SHAKE_BOTTLE_NECK, SHORTCUT
from gradspec.nn._shake_bottle_neck import ShakeBottleNeck
from gradspec.nn._shake_network_promise import SHAKE_RESNET, SHAKE_RESNEXT
from gradspec.nn._shake_resnet import ShakeResNet
from gradspec.nn._shake_resnext import ShakeResNeXt
from gradspec.nn._shortcut import Shortcut

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
]
