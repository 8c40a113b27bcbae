r"""What Shake-Shake computes and draws, apart from how torch calls it.

.. math::

    y = \alpha x_1 + (1 - \alpha) x_2

A weight is a float, or a tensor that broadcasts to the branches: one number an image, or one a batch.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Generator, Tensor

from gradspec.functions._torch import broadcasts_to, carries_tangent

Weight = float | Tensor

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


def mix(x1: Tensor, x2: Tensor, weight: Weight) -> Tensor:
    """Return `weight * x1 + (1 - weight) * x2`; `torch.lerp` would make NaN of an infinity."""
    return weight * x1 + (1 - weight) * x2


def stop_gradient_form(x1: Tensor, x2: Tensor, alpha: Weight, beta: Weight) -> Tensor:
    """Return the same function without a Function: the form that `torch.export` does not strip of its gradient.

    NaN where a branch is infinite, and twice the time, so it is for exporting only.
    """
    if alpha is beta:
        return mix(x1, x2, alpha)  # the gradient is that of forward
    surrogate = mix(x1, x2, beta)
    return mix(x1.detach(), x2.detach(), alpha) + (surrogate - surrogate.detach())


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
        TypeError: a branch is no tensor, or of a dtype without a gradient.
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
    checked = _checked_weight(x, alpha, call, "alpha")
    return checked, checked if beta is alpha else _checked_weight(x, beta, call, "beta")


def _checked_weight(x: Tensor, weight: Weight, call: str, name: str) -> Weight:
    if isinstance(weight, torch.SymFloat | torch.SymInt):
        return weight  # a float that a dynamic compilation keeps open; float() would close it
    if isinstance(weight, bool) or not isinstance(weight, Tensor | float | int):
        raise TypeError(f"{call}: {name} is a {type(weight).__name__}, expected a float or a tensor")
    if not isinstance(weight, Tensor):
        return float(weight)
    if weight.is_complex():
        raise TypeError(f"{call}: {name} has dtype {weight.dtype}, expected a real one")
    if weight.requires_grad or carries_tangent(weight):
        raise ValueError(f"{call}: {name} is differentiated, and no gradient flows to it. Give {name}.detach()")
    if not broadcasts_to(weight, x.shape):
        raise ValueError(
            f"{call}: {name} has shape {tuple(weight.shape)}, which does not broadcast to the branches' shape "
            f"{tuple(x.shape)}"
        )
    return weight.to(x.dtype)
