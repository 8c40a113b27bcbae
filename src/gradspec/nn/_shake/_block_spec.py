"""Specs of the Shake-Shake blocks: `Shortcut`, `ShakeBlock` and `ShakeBottleNeck`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradspec.functions import _papers as papers
from gradspec.functions._shake_shake._cases import SHAKE_SHAKE_2017
from gradspec.nn._shake import _differences as differences
from gradspec.nn._shake import _state as state
from gradspec.nn._shake._block import ShakeBlock
from gradspec.nn._shake._bottle_neck import ShakeBottleNeck
from gradspec.nn._shake._shortcut import Shortcut
from gradspec.spec import Argument, Make, Misuse, ModuleCase, ModuleSpec, ModuleSupports

RESNEXT_2017 = papers.RESNEXT.reference()

BLOCK_OUTPUT = "The output has the shape (B, out_ch, ceil(H / stride), ceil(W / stride))."


def size(name: str, text: str) -> Argument:
    """Return an integer argument of a constructor."""
    return Argument(name=name, type="int", text=text)


def images(channels: str) -> tuple[Argument, ...]:
    """Return the one argument of the call."""
    shape = f"(B, {channels}, H, W)"
    return (
        Argument(name="x", type="Tensor", shape=shape, dtype="same as the module", gradient=True, text="The batch."),
    )


def wrong(name: str, *args: Any, error: type[Exception] = ValueError, match: str, **rest: Any) -> Misuse:
    """Return a wrong construction, or a wrong call where `inputs` are given."""
    return Misuse(case=ModuleCase(name=name, args=args, **rest), error=error, match=match)


def _shortcut_cases(make: Make) -> Iterator[ModuleCase]:
    yield ModuleCase(name="stride 1", args=(4, 6, 1), inputs=(make(3, 4, 6, 6),), output=(6, 6, 6))
    odd = (make(3, 4, 7, 5),)
    yield ModuleCase(name="stride 2, odd image", args=(4, 6, 2), inputs=odd, output=(6, 4, 3), training=True)


def _shortcut_misuses(make: Make) -> Iterator[Misuse]:
    yield wrong("odd out_ch", 4, 5, 1, match="out_ch is 5, and two paths share it evenly; write 6")
    yield wrong("size below 1", 0, 4, 1, match="in_ch is 0; write 1 or more")
    yield wrong("size is a float", 4, 4, 2.0, error=TypeError, match=r"stride is 2\.0; write an integer")


def _block_cases(make: Make) -> Iterator[ModuleCase]:
    yield ModuleCase(name="equal widths", args=(4, 4), inputs=(make(3, 4, 6, 6),), output=(4, 6, 6))
    odd = (make(3, 4, 7, 7),)
    yield ModuleCase(name="wider, stride 2", args=(4, 6, 2), inputs=odd, output=(6, 4, 4), training=True)


def _block_misuses(make: Make) -> Iterator[Misuse]:
    yield wrong("stride on equal widths", 4, 4, 2, match="a block of equal widths adds its input unchanged")
    yield wrong("odd out_ch with a shortcut", 4, 5, match="out_ch is 5, and two paths share it evenly; write 6")
    yield wrong("size below 1", 4, 0, match="out_ch is 0; write 1 or more")
    yield wrong("size is a float", 4, 6, 2.0, error=TypeError, match=r"stride is 2\.0; write an integer")


def _bottle_neck_cases(make: Make) -> Iterator[ModuleCase]:
    yield ModuleCase(name="equal widths", args=(4, 6, 4, 3), inputs=(make(3, 4, 6, 6),), output=(4, 6, 6))
    odd = (make(3, 4, 7, 7),)
    yield ModuleCase(name="wider, stride 2", args=(4, 6, 8, 3, 2), inputs=odd, output=(8, 4, 4), training=True)


def _bottle_neck_misuses(make: Make) -> Iterator[Misuse]:
    yield wrong(
        "mid_ch that is not a multiple", 4, 5, 4, 3, match=r"mid_ch is 5, which 3 groups \(cardinary\) cannot share"
    )
    yield wrong("stride on equal widths", 4, 6, 4, 3, 2, match="a block of equal widths adds its input unchanged")
    yield wrong("odd out_ch with a shortcut", 4, 6, 5, 3, match="out_ch is 5, and two paths share it evenly; write 6")
    yield wrong("size below 1", 4, 6, 4, 0, match="cardinary is 0; write 1 or more")
    yield wrong("size is text", 4, "6", 4, 3, error=TypeError, match="mid_ch is '6'; write an integer")


SHORTCUT = ModuleSpec(
    name="shortcut",
    module=Shortcut,
    cases=_shortcut_cases,
    raises=_shortcut_misuses,
    state=state.shortcut,
    wrt=("x",),
    data_parallel=("ddp", "fsdp2"),
    arguments=(
        size("in_ch", "Channels of the input."),
        size("out_ch", "Channels of the output, an even number: each of two paths makes half."),
        size("stride", "Every `stride`-th pixel of each side is kept."),
    ),
    inputs=images("in_ch"),
    returns=BLOCK_OUTPUT,
    documented=(Shortcut,),
    references=(SHAKE_SHAKE_2017,),
    differences=differences.SHORTCUT,
    supports=ModuleSupports.all(),
)
SHAKE_BLOCK = ModuleSpec(
    name="shake_block",
    module=ShakeBlock,
    cases=_block_cases,
    raises=_block_misuses,
    state=state.block,
    wrt=("x",),
    data_parallel=("ddp", "fsdp2"),
    arguments=(
        size("in_ch", "Channels of the input."),
        size("out_ch", "Channels of the output."),
        size("stride", "That of the first convolution of each branch and of the shortcut."),
    ),
    inputs=images("in_ch"),
    returns=BLOCK_OUTPUT,
    documented=(ShakeBlock,),
    references=(SHAKE_SHAKE_2017,),
    differences=differences.SHAKE_BLOCK,
    supports=ModuleSupports.all(),
)
SHAKE_BOTTLE_NECK = ModuleSpec(
    name="shake_bottle_neck",
    module=ShakeBottleNeck,
    cases=_bottle_neck_cases,
    raises=_bottle_neck_misuses,
    state=state.bottle_neck,
    wrt=("x",),
    data_parallel=("ddp", "fsdp2"),
    arguments=(
        size("in_ch", "Channels of the input."),
        size("mid_ch", "Channels inside the branches, a multiple of `cardinary`."),
        size("out_ch", "Channels of the output."),
        size("cardinary", "The cardinality of ResNeXt: the groups of the 3 x 3 convolution."),
        size("stride", "That of the 3 x 3 convolution and of the shortcut."),
    ),
    inputs=images("in_ch"),
    returns=BLOCK_OUTPUT,
    documented=(ShakeBottleNeck,),
    references=(SHAKE_SHAKE_2017, RESNEXT_2017),
    differences=differences.SHAKE_BOTTLE_NECK,
    supports=ModuleSupports.all(),
)
