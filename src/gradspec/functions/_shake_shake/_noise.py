"""The weights of Shake-Shake: what may be asked for, what is drawn, and what is refused.

A weight is a float, or a tensor that broadcasts to the branches: one number an image, or one a batch.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Generator, Tensor

from gradspec.functions._coefficient import Coefficient as Weight
from gradspec.functions._coefficient import checked_coefficient

#: The weight of an even mixture, drawn from nothing.
EVEN: Final = 0.5
#: Both weights of evaluation.
EVENS: Final = (EVEN, EVEN)

#: What each option of `shake_shake` may be.
OPTIONS: Final = {
    "forward": ("even", "shake"),
    "backward": ("even", "shake", "keep"),
    "level": ("batch", "image"),
}
HALF_TYPES: Final = (torch.float16, torch.bfloat16)


def draw(x: Tensor, *, level: str = "image", generator: Generator | None = None) -> Tensor:
    """Return uniform weights for x: one a sample, or one for the batch; they broadcast to x.

    Args:
        x: a branch, batch first.
        level: "image" or "batch".
        generator: where the numbers come from; torch's own generator of x's device unless given.
    """
    shape = (1,) * x.ndim if level == "batch" else (x.shape[0],) + (1,) * (x.ndim - 1)
    # A half type has too few numbers between 0 and 1 to draw from.
    dtype = torch.float32 if x.dtype in HALF_TYPES else x.dtype
    return torch.rand(shape, dtype=dtype, device=x.device, generator=generator).to(x.dtype)


def weights(
    x: Tensor, *, forward: str, backward: str, level: str, generator: Generator | None = None
) -> tuple[Weight, Weight]:
    """Return alpha and beta of a training step: alpha is drawn first, and what is not shaken is not drawn."""
    alpha: Weight = draw(x, level=level, generator=generator) if forward == "shake" else EVEN
    if backward == "keep":
        return alpha, alpha
    return alpha, draw(x, level=level, generator=generator) if backward == "shake" else EVEN


def check_options(call: str, **given: str) -> None:
    """Refuse an option that is none of its choices."""
    for name, value in given.items():
        if value not in OPTIONS[name]:
            choices = ", ".join(repr(choice) for choice in OPTIONS[name])
            raise ValueError(f"{call}: {name} is {value!r}, expected one of {choices}")


def check_branches(x1: Tensor, x2: Tensor, *, call: str, level: str = "batch") -> None:
    """Refuse branches that are not two floating tensors of one shape, dtype and device.

    Args:
        x1, x2: what the caller gave.
        call: how the call is written, for the messages: "ShakeShake.apply".
        level: "image" asks for a batch dimension.

    Raises:
        TypeError: a branch is not a tensor, or of a dtype without a gradient.
        ValueError: shapes, dtypes or devices differ, or there is no batch dimension to draw along.
    """
    for name, x in (("x1", x1), ("x2", x2)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{call}: {name} is a {type(x).__name__}, expected a tensor. Write {call}(x1, x2)")
        if not x.is_floating_point():
            raise TypeError(f"{call}: {name} has dtype {x.dtype}, expected a floating one")
    if x1.shape != x2.shape:
        raise ValueError(
            f"{call}: the branches have shapes {tuple(x1.shape)} and {tuple(x2.shape)}, expected one shape. "
            f"Expand one of them, if broadcasting is meant"
        )
    if x1.dtype != x2.dtype:
        raise ValueError(f"{call}: the branches have dtypes {x1.dtype} and {x2.dtype}, expected one dtype")
    if x1.device != x2.device:
        raise ValueError(f"{call}: the branches are on {x1.device} and {x2.device}, expected one device")
    if level == "image" and x1.ndim == 0:
        raise ValueError(
            f"{call}: the branches have no dimension, expected a batch first, as one weight is drawn a sample. "
            f"shake_shake(x1, x2, level='batch') draws one in all"
        )


def checked_weights(x: Tensor, given: tuple[Weight, ...], *, call: str) -> tuple[Weight, Weight]:
    """Return alpha and beta as the Function takes them: floats, or tensors of x's dtype that broadcast to x's shape.

    Raises:
        TypeError: a weight is missing, or neither a float nor a real tensor.
        ValueError: a weight requires grad, carries a tangent, or does not broadcast to x's shape.
    """
    if len(given) != 2:
        raise TypeError(f"{call} takes two weights, alpha and beta, got {len(given)}")
    alpha, beta = given
    checked = checked_coefficient(x, alpha, call=call, name="alpha")
    return checked, checked if beta is alpha else checked_coefficient(x, beta, call=call, name="beta")
