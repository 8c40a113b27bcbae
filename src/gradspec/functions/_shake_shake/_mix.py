r"""The arithmetic of Shake-Shake for a given weight.

.. math::

    y = w x_1 + (1 - w) x_2

Rounded in this order, and never with a fused multiply-add (`torch.addcmul`, `torch.add` with `alpha`): where the two
products cancel, that is other numbers than the published formula's. `torch.lerp` would make NaN of an infinity.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from gradspec.functions._coefficient import Coefficient as Weight
from gradspec.functions._torch import transforms_active

#: From this size on, the second product is made in slices: fresh pages of memory cost more than the arithmetic.
LARGE_BYTES: Final = 8 << 20
#: How many: the fewer, the less often the threads wait for each other; the more, the less memory is fresh.
SLICES: Final = 4


def mix(x1: Tensor, x2: Tensor, weight: Weight) -> Tensor:
    """Return `weight * x1 + (1 - weight) * x2`, by operations that torch differentiates."""
    return weight * x1 + (1 - weight) * x2


def mix_in_place(x1: Tensor, x2: Tensor, weight: Weight) -> Tensor:
    """Return the numbers of `mix`, for a forward pass: the second product is added to the first one in place."""
    if transforms_active():
        return mix(x1, x2, weight)  # under vmap the first product may lack the dimension that the second one has
    y, rest = weight * x1, 1 - weight
    # Only where nothing records or compiles, and where memory comes from the system: a GPU has torch's own allocator.
    if type(y) is not Tensor or not y.is_cpu or y.nbytes < LARGE_BYTES:
        return y.add_(x2 * rest)
    x2_slices = x2.tensor_split(SLICES)
    rests: tuple[Weight, ...] = (
        rest.expand_as(x2).tensor_split(SLICES) if isinstance(rest, Tensor) else (rest,) * SLICES
    )
    product = torch.empty_like(x2_slices[0])
    for y_rows, x2_rows, rest_rows in zip(y.tensor_split(SLICES), x2_slices, rests, strict=True):
        y_rows.add_(torch.mul(x2_rows, rest_rows, out=product[: len(x2_rows)]))
    return y


def stop_gradient_form(x1: Tensor, x2: Tensor, alpha: Weight, beta: Weight) -> Tensor:
    """Return the same function without a Function: the form that `torch.export` does not strip of its gradient.

    NaN where a branch is infinite, and twice the time, so it is for exporting only.
    """
    if alpha is beta:
        return mix(x1, x2, alpha)  # the gradient is that of forward
    surrogate = mix(x1, x2, beta)
    return mix(x1.detach(), x2.detach(), alpha) + (surrogate - surrogate.detach())
