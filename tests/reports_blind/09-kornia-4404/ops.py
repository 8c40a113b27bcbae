"""Exponential map of rotations: the branch that torch.where does not take poisons the gradient at the identity."""

import torch
from torch import Tensor


def _hat(v: Tensor) -> Tensor:
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).unflatten(-1, (3, 3))


def so3_exp(v: Tensor) -> Tensor:
    theta = v.norm(dim=-1)[..., None, None]
    small = theta < 1e-4
    a = torch.where(small, 1 - theta**2 / 6, theta.sin() / theta)
    b = torch.where(small, 0.5 - theta**2 / 24, (1 - theta.cos()) / theta**2)
    k = _hat(v)
    return torch.eye(3, dtype=v.dtype) + a * k + b * (k @ k)


def so3_exp_mended(v: Tensor) -> Tensor:
    square = v.square().sum(-1)[..., None, None]
    small = square < 1e-8
    theta = torch.where(small, 1.0, square).sqrt()
    a = torch.where(small, 1 - square / 6, theta.sin() / theta)
    b = torch.where(small, 0.5 - square / 24, (1 - theta.cos()) / theta**2)
    k = _hat(v)
    return torch.eye(3, dtype=v.dtype) + a * k + b * (k @ k)
