"""Specs of the Shake-Shake networks, `ShakeResNet` and `ShakeResNeXt`, on small ones."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.functions._shake_shake._cases import SHAKE_SHAKE_2017
from gradspec.nn._shake import _differences as differences
from gradspec.nn._shake import _state as state
from gradspec.nn._shake._block_spec import RESNEXT_2017, images, size, wrong
from gradspec.nn._shake._resnet import ShakeResNet
from gradspec.nn._shake._resnext import ShakeResNeXt
from gradspec.spec import Make, Misuse, ModuleCase, ModuleSpec, ModuleSupports


def _resnet_cases(make: Make) -> Iterator[ModuleCase]:
    yield ModuleCase(name="two blocks a layer", args=(14, 2, 5), inputs=(make(3, 3, 9, 7),), output=(5,), training=True)
    yield ModuleCase(name="images of 64 x 64", args=(8, 2, 5), inputs=(make(2, 3, 64, 64),), output=(5,))


def _resnet_misuses(make: Make) -> Iterator[Misuse]:
    yield wrong("depth that does not fit", 10, 4, 5, match=r"depth is 10, which is not 6n \+ 2 .* write 8 or 14")
    yield wrong("odd w_base", 8, 5, 5, match="w_base is 5, .* write 6")
    yield wrong("size below 1", 8, 4, 0, match="label is 0; write 1 or more")
    yield wrong("size is a float", 8.0, 4, 5, error=TypeError, match=r"depth is 8\.0; write an integer")
    yield wrong("grey images", 8, 4, 5, inputs=(make(2, 1, 8, 8),), match=r"shape \(2, 1, 8, 8\); give images of shape")
    yield wrong("one image without a batch", 8, 4, 5, inputs=(make(3, 8, 8),), match=r"shape \(3, 8, 8\); give images")
    yield wrong(
        "images too small", 8, 4, 5, inputs=(make(2, 3, 3, 8),), match="the images are 3 x 8, .* at least 4 x 4"
    )


def _resnext_cases(make: Make) -> Iterator[ModuleCase]:
    small = (make(2, 3, 4, 4),)
    yield ModuleCase(name="small images", args=(11, 64, 1, 5), inputs=small, output=(5,), training=True)


def _resnext_misuses(make: Make) -> Iterator[Misuse]:
    yield wrong("depth that does not fit", 12, 64, 1, 5, match=r"depth is 12, which is not 9n \+ 2 .* write 11 or 20")
    yield wrong("width below a unit", 11, 48, 1, 5, match="w_base is 48, which is no multiple of 64; write 64 or 128")
    yield wrong("width between units", 11, 96, 1, 5, match="w_base is 96, which is no multiple of 64; write 64 or 128")
    yield wrong("size below 1", 11, 64, 0, 5, match="cardinary is 0; write 1 or more")
    yield wrong("size is a float", 11, 64, 1.0, 5, error=TypeError, match=r"cardinary is 1\.0; write an integer")
    yield wrong("grey images", 11, 64, 1, 5, inputs=(make(2, 1, 8, 8),), match=r"shape \(2, 1, 8, 8\); give images")
    yield wrong("images too small", 11, 64, 1, 5, inputs=(make(2, 3, 4, 2),), match="the images are 4 x 2")


LABEL = size("label", "The number of classes.")
SHAKE_RESNET = ModuleSpec(
    name="shake_resnet",
    module=ShakeResNet,
    cases=_resnet_cases,
    raises=_resnet_misuses,
    state=state.resnet,
    wrt=("x",),
    data_parallel=("ddp", "fsdp2"),
    arguments=(
        size("depth", "`6n + 2`, for n blocks in each of three layers."),
        size("w_base", "Channels of the first layer, an even number."),
        LABEL,
    ),
    inputs=images("3"),
    returns="The logits, of shape (B, label).",
    documented=(ShakeResNet,),
    references=(SHAKE_SHAKE_2017,),
    differences=differences.SHAKE_RESNET,
    supports=ModuleSupports.all(),
)
SHAKE_RESNEXT = ModuleSpec(
    name="shake_resnext",
    module=ShakeResNeXt,
    cases=_resnext_cases,
    raises=_resnext_misuses,
    state=state.resnext,
    wrt=("x",),
    data_parallel=("ddp", "fsdp2"),
    arguments=(
        size("depth", "`9n + 2`, for n blocks in each of three layers."),
        size("w_base", "Channels of a group in the first layer, a multiple of 64."),
        size("cardinary", "The cardinality: the number of groups."),
        LABEL,
    ),
    inputs=images("3"),
    returns="The logits, of shape (B, label).",
    documented=(ShakeResNeXt,),
    references=(SHAKE_SHAKE_2017, RESNEXT_2017),
    differences=differences.SHAKE_RESNEXT,
    supports=ModuleSupports.all(),
)
