"""Symmetric matrices, if a function reads one triangle: they move along symmetric directions only.

`torch.linalg.eigvalsh` and `cholesky` are functions on the space of symmetric matrices. Their gradient is the symmetric
one there; along other directions a derivative is one of the triangle that happens to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gradspec.laws.tensor.support._call import Inputs, differentiable

#: How far from symmetric, of its largest element, a matrix is that a product in float32 made: `x @ x.mT`.
ROUNDED = 1e-6


def kept_symmetric(
    inputs: Inputs,
    u: tuple[Tensor, ...],
    function: Callable[..., tuple[Tensor, ...]],
    gradients: Sequence[Tensor | None] = (),
) -> tuple[Tensor, ...] | None:
    """Return a direction in which symmetric matrices stay so; None where it is the one that is given.

    Args:
        inputs: the arguments.
        u: a direction in which the differentiated ones move.
        function: takes the differentiated ones. A matrix counts only if it does not read one of its triangles: a
            function of all its elements, a product, say, has a derivative along every direction.
        gradients: of the differentiated ones; with them only a matrix counts whose gradient is symmetric, and beside
            one of which a triangle is read all of these: a product with them may be what is taken for symmetric next.
    """
    symmetric = [k for k, x in enumerate(inputs.tensors()) if is_symmetric(x, ROUNDED) and not is_symmetric(u[k])]
    places = {k for k in symmetric if _reads_one_triangle(inputs, k, u[k], function)}
    if places and gradients:
        fitting = {k for k in symmetric if _is_symmetric(gradients[k])}
        places = fitting if places <= fitting else set()
    return tuple((t + t.mH) / 2 if k in places else t for k, t in enumerate(u)) if places else None


def _is_symmetric(gradient: Tensor | None) -> bool:
    return gradient is not None and is_symmetric(gradient, ROUNDED)


def is_symmetric(x: Tensor, tolerance: float = 0.0) -> bool:
    """Whether a tensor is a symmetric matrix, or an Hermitian one, or a batch of such; a single number is none."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 2 or not x.numel():
        return False
    return bool((x - x.mH).abs().max() <= tolerance * x.abs().max())


def _reads_one_triangle(inputs: Inputs, place: int, u: Tensor, function: Callable[..., tuple[Tensor, ...]]) -> bool:
    x = inputs.tensors()
    with torch.no_grad():
        y = function(*x)
        for triangle in (u.triu(1), u.tril(-1)):
            moved = function(*(a + triangle if k == place else a for k, a in enumerate(x)))
            pairs = [(a, b) for a, b in zip(y, moved, strict=True) if differentiable(a)]
            if pairs and all(torch.equal(a, b) for a, b in pairs):
                return True
    return False
