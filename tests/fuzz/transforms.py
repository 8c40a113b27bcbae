"""Transforms of a function of tensors that returns tensors; each gives such a function again, so that they compose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from gradspec.spec import FunctionSpec

Tensors = tuple[Tensor, ...]
Map = Callable[..., Tensors]


def numbers(like: Tensor, phase: float) -> Tensor:
    """Return numbers between -1 and 1 of the shape of a tensor: the same ones for a shape, whatever transforms it."""
    count = torch.arange(like.shape.numel(), dtype=torch.float64)
    found = torch.cos(1.7 * count + phase).reshape(like.shape)
    return found.to(like.dtype)


def loss(outputs: Tensors) -> Tensor:
    """Return a real number of outputs that has second derivatives: `Re sum(w y) + |y|^2 / 4`."""
    parts = [torch.real((numbers(y, 0.3) * y).sum()) + torch.real((y * y.conj()).sum()) / 4 for y in outputs]
    return torch.stack(parts).sum()


def grad(f: Map) -> Map:
    return lambda *xs: torch.func.grad(lambda *ys: loss(f(*ys)), argnums=tuple(range(len(xs))))(*xs)


def vmap(f: Map) -> Map:
    """Map over a point and its opposite; the last argument of several is the same in both."""

    def call(*xs: Tensor) -> Tensors:
        shared = len(xs) > 1
        # Not a multiple of x: torch widens the tangent of a number in single precision that a Python number multiplies.
        stacked = tuple(torch.stack((x, -x), -1) for x in xs[: len(xs) - shared])
        dims = (*[-1] * len(stacked), *[None] * shared)
        return torch.vmap(f, in_dims=dims)(*stacked, *xs[len(stacked) :])

    return call


def tangents(xs: Tensors) -> Tensors:
    return tuple(numbers(x, 0.9) for x in xs)


def jvp(f: Map) -> Map:
    def call(*xs: Tensor) -> Tensors:
        y, y_dot = torch.func.jvp(f, xs, tangents(xs))
        return (*y, *y_dot)

    return call


def _jacobian(transform: Callable[..., Any]) -> Callable[[Map], Map]:
    def transformed(f: Map) -> Map:
        def call(*xs: Tensor) -> Tensors:
            rows = transform(f, argnums=tuple(range(len(xs))))(*xs)
            return tuple(block for row in rows for block in row)

        return call

    return transformed


def autograd(f: Map) -> Map:
    """The gradient by `torch.autograd.grad`, with a graph, so that it can be differentiated again."""

    def call(*xs: Tensor) -> Tensors:
        root = loss(f(*xs))
        if not root.requires_grad:  # what was a constant already; another graph of it may lead nowhere
            return tuple(torch.zeros_like(x) for x in xs)
        return tuple(torch.autograd.grad(root, xs, create_graph=True, materialize_grads=True))

    return call


def checkpoint(f: Map) -> Map:
    return lambda *xs: torch_checkpoint(f, *xs, use_reentrant=False)


def dual(f: Map) -> Map:
    """Value and derivative by dual numbers."""

    def call(*xs: Tensor) -> Tensors:
        with forward_ad.dual_level():
            ys = f(*(forward_ad.make_dual(x, x_dot) for x, x_dot in zip(xs, tangents(xs), strict=True)))
            pairs = [forward_ad.unpack_dual(y) for y in ys]
        slopes = [torch.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs]
        return (*(p.primal for p in pairs), *slopes)

    return call


#: Those of torch.func, which compose in any order, and those that only go around them.
FUNCTIONAL = ("grad", "vmap", "jvp", "jacfwd", "jacrev")
AROUND = ("autograd", "checkpoint", "dual")
TRANSFORMS: dict[str, Callable[[Map], Map]] = {
    "grad": grad,
    "vmap": vmap,
    "jvp": jvp,
    "jacfwd": _jacobian(torch.func.jacfwd),
    "jacrev": _jacobian(torch.func.jacrev),
    "autograd": autograd,
    "checkpoint": checkpoint,
    "dual": dual,
}
DEPTH = 3


def _composes(inner_first: tuple[str, ...]) -> bool:
    """Whether torch has such a composition for an ordinary function."""
    around = [name in AROUND for name in inner_first]
    if around != sorted(around):  # torch.autograd inside of torch.func
        return False
    if "checkpoint" in inner_first and not all(around):  # torch.func takes no hooks on saved tensors
        return False
    if inner_first == ("checkpoint", "dual", "autograd"):  # the recomputation comes when the dual numbers are gone
        return False
    forward = [name in ("jvp", "jacfwd", "dual") for name in inner_first]
    return "dual" not in inner_first or sum(forward) == 1  # dual numbers do not nest


#: Every composition, the innermost transform first.
COMPOSITIONS = tuple(
    names
    for depth in range(1, DEPTH + 1)
    for names in product((*FUNCTIONAL, *AROUND), repeat=depth)
    if _composes(names) and names.count("checkpoint") < 2
)


FORWARD = ("jvp", "jacfwd", "dual")
LOSSES = ("instance_discrimination_loss", "linear_cross_entropy")


def limit(name: str, transforms: tuple[str, ...]) -> str:
    """Return why a composition is not asked of a function, a limit of torch or of a bank; empty if it is asked.

    test_limits.py holds that each of these is still one.
    """
    if name == "linear_average_op" and transforms[-1] == "checkpoint" and transforms.count("autograd") == 2:
        return "a recomputation after a backward pass calls the function on a bank that has moved"
    if name not in LOSSES:
        return ""
    if sum(transform in FORWARD for transform in transforms) > 1:
        return "forward over forward: torch takes the jvp of a custom Function for a constant (pytorch issue 197867)"
    if transforms[0] == "dual" and {"autograd", "checkpoint"} <= set(transforms):
        return "torch's own cross_entropy, which the reference is, has another derivative there"
    return ""


def declared_refusal(spec: FunctionSpec, transforms: tuple[str, ...]) -> str:
    """Return the first transform that the spec says it refuses."""
    promised = {
        "vmap": spec.supports.vmap,
        "jvp": spec.supports.forward_mode,
        "jacfwd": spec.supports.forward_mode,
        "dual": spec.supports.forward_mode,
        "grad": spec.supports.func_grad,
        "jacrev": spec.supports.func_grad,
    }
    return next((name for name in transforms if promised.get(name, True) is False), "")


def composed(f: Map, names: tuple[str, ...]) -> Map:
    """Return a function behind transforms."""
    for name in names:
        f = TRANSFORMS[name](f)
    return f


def sizes(names: tuple[str, ...], inputs: int, outputs: int) -> Iterator[int]:
    """Yield how many numbers each step returns, from the innermost on."""
    for name in names:
        if name in ("jacfwd", "jacrev"):
            outputs *= inputs
        elif name in ("grad", "autograd"):
            outputs = inputs
        elif name in ("vmap", "jvp", "dual"):
            outputs *= 2
        yield outputs
