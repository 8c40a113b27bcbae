"""Quaternion of a rotation matrix: the gradient at the identity is NaN, of the square root of zero."""

import torch
from torch import Tensor


def _radicands(m: Tensor) -> Tensor:
    a, b, c = m.diagonal(dim1=-2, dim2=-1).unbind(-1)
    return torch.stack([1 + a + b + c, 1 + a - b - c, 1 - a + b - c, 1 - a - b + c], -1)


def _signed(m: Tensor, size: Tensor) -> Tensor:
    w, x, y, z = size.unbind(-1)
    x = x.copysign(m[..., 2, 1] - m[..., 1, 2])
    y = y.copysign(m[..., 0, 2] - m[..., 2, 0])
    z = z.copysign(m[..., 1, 0] - m[..., 0, 1])
    return torch.stack([w, x, y, z], -1)


def matrix_to_quaternion(m: Tensor) -> Tensor:
    return _signed(m, 0.5 * _radicands(m).clamp(min=0).sqrt())


def matrix_to_quaternion_mended(m: Tensor) -> Tensor:
    """The gradient of a root of zero is zero, of which the slope is infinite."""
    r = _radicands(m)
    positive = r > 0
    size = torch.where(positive, torch.where(positive, r, 1.0).sqrt(), 0.0)
    return _signed(m, 0.5 * size)
