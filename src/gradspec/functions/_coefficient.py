"""A number that multiplies a tensor and gets no gradient: how it is checked, and kept for the passes to come."""

from __future__ import annotations

from numbers import Real
from typing import Any

import torch
from torch import Tensor

from gradspec.functions._torch import has_tangent

Coefficient = float | Tensor


def checked_coefficient(x: Tensor, coefficient: Coefficient, *, call: str, name: str) -> Coefficient:
    """Return the coefficient as a Function takes it: a float, or a tensor of x's dtype that broadcasts to x's shape.

    That of a complex x is the dtype of its parts.

    Args:
        x: the tensor that it multiplies.
        coefficient: what the caller gave.
        call: how the call is written, for the messages: "GradFactor.apply".
        name: what the call names the coefficient, for the messages.

    Raises:
        TypeError: it is complex, or no number.
        ValueError: it requires grad, carries a tangent, or does not broadcast to x's shape.
    """
    if type(coefficient) is float:
        return coefficient  # most calls
    if isinstance(coefficient, Tensor):
        return _checked_tensor(x, coefficient, call, name)
    if isinstance(coefficient, complex):
        raise TypeError(f"{call}: {name} is the complex {coefficient}, expected a real number")
    if isinstance(coefficient, torch.SymFloat | torch.SymInt):
        return coefficient  # a float that a dynamic compilation keeps open; float() would close it
    if not isinstance(coefficient, Real):
        raise TypeError(f"{call}: {name} is a {type(coefficient).__name__}, expected a float or a tensor")
    return float(coefficient)


def _checked_tensor(x: Tensor, coefficient: Tensor, call: str, name: str) -> Tensor:
    if coefficient.is_complex():
        raise TypeError(f"{call}: {name} has dtype {coefficient.dtype}, expected a real one")
    if has_tangent(coefficient):
        raise ValueError(f"{call}: {name} carries a tangent, and {name} is not differentiated. Give {name}.detach()")
    if coefficient.requires_grad:
        raise ValueError(f"{call}: {name} requires grad, and no gradient flows to it. Give {name}.detach()")
    if not broadcasts_to(coefficient, x.shape):
        raise ValueError(
            f"{call}: {name} has shape {tuple(coefficient.shape)}, which does not broadcast to x's shape "
            f"{tuple(x.shape)}"
        )
    is_number = x.is_floating_point() or x.is_complex()
    return coefficient.to(dtype=x.dtype.to_real()) if is_number else coefficient


def broadcasts_to(tensor: Tensor, shape: torch.Size) -> bool:
    """Whether a tensor broadcasts to exactly this shape."""
    padded = (1,) * (len(shape) - tensor.ndim) + tuple(tensor.shape)
    return len(padded) == len(shape) and all(n in (1, m) for n, m in zip(padded, shape, strict=True))


def bytes_of_coefficient(coefficient: Coefficient, x: Tensor) -> int:
    """Return the most bytes that `save_coefficient` keeps beside the coefficient of a call, which the caller has."""
    if isinstance(coefficient, Tensor) and coefficient.dtype != x.dtype:
        return coefficient.numel() * x.element_size()
    return 0


def save_coefficient(ctx: Any, coefficient: Coefficient) -> None:
    """Keep it for backward and forward mode: a tensor where torch tracks it, a float on ctx."""
    ctx.coefficient = None if isinstance(coefficient, Tensor) else coefficient
    if isinstance(coefficient, Tensor):
        ctx.save_for_backward(coefficient)
        ctx.save_for_forward(coefficient)


def saved_coefficient(ctx: Any) -> Coefficient:
    """Return what `save_coefficient` kept."""
    coefficient: Coefficient = ctx.saved_tensors[0] if ctx.coefficient is None else ctx.coefficient
    return coefficient
