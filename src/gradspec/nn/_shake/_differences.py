"""How the published Shake-Shake modules behave otherwise; the record of the peers shows each row."""

from __future__ import annotations

from gradspec.spec import Difference

FOLDER = "archai.supergraph.models.shakeshake"


def _rows(path: str, *rows: tuple[str, str, str, str]) -> tuple[Difference, ...]:
    return tuple(
        Difference(peer=f"{FOLDER}.{path}", published=published, ours=ours, law=law, case=case)
        for published, ours, law, case in rows
    )


def _random_in_evaluation(case: str) -> tuple[str, str, str, str]:
    return (
        "In evaluation the gradient is random: backward draws whatever the mode.",
        "In evaluation each branch gets one half of the cotangent.",
        "evaluation_mode",
        case,
    )


def _not_functional(case: str) -> tuple[str, str, str, str]:
    return (
        "`torch.func.grad` of it raises.",
        "`torch.func.functional_call`, `grad` and `vmap` work.",
        "functional_call",
        case,
    )


_TRUNCATED_DEPTH = (
    "Any depth is taken, and truncated to one that fits.",
    "A depth that does not fit is refused, with two that do.",
    "wrong_call",
    "depth that does not fit",
)
_FREE_STRIDE = (
    "A stride on equal widths is taken, and the call fails on two shapes.",
    "It is refused when the block is made.",
    "wrong_call",
    "stride on equal widths",
)

SHORTCUT = _rows(
    "shakeshake.Shortcut",
    (
        "An odd `out_ch` is taken, and batch norm fails when it is called.",
        "An odd `out_ch` is refused when the module is made.",
        "wrong_call",
        "odd out_ch",
    ),
)
SHAKE_BLOCK = _rows(
    "shake_resnet.ShakeBlock",
    (
        "A block of equal widths carries a shortcut that it never calls.",
        "It carries none, and drops those keys from a checkpoint.",
        "state_dict",
        "equal widths",
    ),
    (
        "The parameters of that shortcut get no gradient.",
        "A gradient reaches every parameter.",
        "gradient_flow",
        "equal widths",
    ),
    _random_in_evaluation("equal widths"),
    _not_functional("equal widths"),
    _FREE_STRIDE,
)
SHAKE_BOTTLE_NECK = _rows(
    "shake_resnext.ShakeBottleNeck",
    _random_in_evaluation("equal widths"),
    _not_functional("equal widths"),
    _FREE_STRIDE,
)
SHAKE_RESNET = _rows(
    "shake_resnet.ShakeResNet",
    _TRUNCATED_DEPTH,
    (
        "The head pools windows of 8 x 8: two images of 64 x 64 get eight rows of logits.",
        "The head averages all pixels: one row an image, the same numbers for images of 32 x 32.",
        "batch_size",
        "images of 64 x 64",
    ),
    (
        "Images whose last map is smaller than 8 x 8 raise.",
        "Images of 4 x 4 and more are taken.",
        "batch_size",
        "two blocks a layer",
    ),
    _random_in_evaluation("images of 64 x 64"),
)
SHAKE_RESNEXT = _rows(
    "shake_resnext.ShakeResNeXt",
    _TRUNCATED_DEPTH,
    (
        "A `w_base` below 64 makes convolutions of no channels.",
        "A `w_base` that is no multiple of 64 is refused, with two that are.",
        "wrong_call",
        "width below a unit",
    ),
    (
        "Images whose last map is smaller than 8 x 8 raise.",
        "Images of 4 x 4 and more are taken.",
        "batch_size",
        "small images",
    ),
)
