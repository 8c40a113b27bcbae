"""The maps that published kernels compute, in plain torch, and the inputs that several of them share."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._interpreter import prepare
from gradspec_lab.kernels._kernel import draw, stored

#: (rows, columns): whole tiles, one element, and around a tile of 16 or 32.
ROWS = ((4, 64), (1, 1), (3, 15), (5, 16), (5, 17), (17, 31), (2, 127))


def imported(path: str, name: str) -> Callable[..., Any]:
    """An attribute of a package, once Triton's interpreter is prepared."""
    from importlib import import_module

    prepare()
    found: Any = import_module(path)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def from_file(distribution: str, path: str, name: str) -> Callable[..., Any]:
    """An attribute of one file of a package whose `__init__` needs what is not here (jax, CUDA)."""
    import sys
    from importlib import metadata
    from types import ModuleType

    folder, _, file = path.rpartition("/")
    package = "_laboratory_" + folder.replace("/", "_")
    if package not in sys.modules:
        empty = ModuleType(package)
        empty.__path__ = [str(metadata.distribution(distribution).locate_file(folder))]
        sys.modules[package] = empty
    return imported(f"{package}.{file.removesuffix('.py')}", name)


def lazily(path: str, name: str, *rest: Any, **named: Any) -> Callable[..., Any]:
    """A call of a package's function, which is imported at the first call."""

    def call(*args: Any) -> Any:
        return imported(path, name)(*args, *rest, **named)

    return call


def rows(*kinds: str, large: float = 1000.0) -> Any:
    """A maker of (rows, columns) tensors and of vectors.

    Args:
        kinds: "xx" is a (rows, columns) tensor, "w" a vector of the columns near one, in the arguments' order.
        large: The factor of the scale "large".
    """

    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        def vector() -> Tensor:
            return (1 + 0.3 * torch.randn(shape[-1:], generator=generator, dtype=torch.float64)).to(dtype)

        return tuple(draw(generator, shape, dtype, scale, large) if kind == "xx" else vector() for kind in kinds)

    return make


def rms_norm(eps: float = 1e-6, place: bool = False) -> Callable[..., Tensor]:
    """X / sqrt(mean(x^2) + eps) * w."""

    def reference(x: Tensor, w: Tensor) -> Tensor:
        normal = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        if not place:
            return normal * w
        # The gradient at "w rows" is that of the weight before the sum over the rows.
        return stored("xhat", normal) * stored("w rows", w.expand(x.shape))

    return reference


def layer_norm(eps: float = 1e-5) -> Callable[..., Tensor]:
    """(x - mean) / sqrt(variance + eps) * w + b."""

    def reference(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * w + b

    return reference


def softmax(x: Tensor) -> Tensor:
    """exp(x) / sum exp(x)."""
    e = (x - x.amax(-1, keepdim=True).detach()).exp()
    return e / e.sum(-1, keepdim=True)


def log_softmax(x: Tensor) -> Tensor:
    """X - log sum exp(x)."""
    x = x - x.amax(-1, keepdim=True).detach()
    return x - x.exp().sum(-1, keepdim=True).log()


def cross_entropy(logits: Tensor, labels: Tensor, reduction: str = "mean", ignore_index: int = -100) -> Tensor:
    """Negative log likelihood of the labels that are not ignored."""
    keep = labels != ignore_index
    picked = log_softmax(logits).gather(-1, torch.where(keep, labels, 0)[:, None])[:, 0]
    loss = torch.where(keep, -picked, torch.zeros_like(picked))
    return loss if reduction == "none" else loss.sum() / (keep.sum().clamp(min=1) if reduction == "mean" else 1)


def softmax_from_output(x: Tensor) -> Tensor:
    """Softmax whose gradient y (dy - sum dy y) is computed from the output y, a stored place."""
    y = stored("y", softmax(x.detach()))
    # Zero in value; its gradient at a fixed y is that of softmax.
    linear = y * (x - (y * x).sum(-1, keepdim=True))
    return y + (linear - linear.detach())


def flash_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention whose gradient P (dP - delta) has delta from the output O, a stored place like P."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    visible = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
    weights = stored("P", softmax(scores.detach().masked_fill(~visible, -math.inf)))
    out = stored("O", weights @ v.detach())
    # Zero in value; its gradient at a fixed P and O is that of the scores.
    weighted = weights * torch.where(visible, stored("S", scores), torch.zeros_like(scores))
    linear = weighted @ v.detach() - weighted.sum(-1, keepdim=True) * out
    return weights @ v + (linear - linear.detach())


def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, extra: float = 0.0) -> Tensor:
    """softmax(q k' / sqrt d) v over (batch, heads, length, d), with P stored; `extra` is added to the denominator."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        length, keys = scores.shape[-2:]
        visible = torch.ones(length, keys, dtype=torch.bool, device=q.device).tril(keys - length)
        scores = scores.masked_fill(~visible, -math.inf)
    top = scores.amax(-1, keepdim=True).detach()
    top = torch.maximum(top, torch.zeros_like(top)) if extra else top
    scores = stored("S", scores)
    e = (scores - top).exp()
    weights = e / (e.sum(-1, keepdim=True) + extra * torch.exp(-top))
    return stored("P", weights) @ v


def swapped(function: Callable[..., Tensor], **named: Any) -> Callable[..., Tensor]:
    """An attention over (batch, length, heads, d)."""
    return lambda *args: function(*(a.transpose(1, 2) for a in args), **named).transpose(1, 2)


def heads(large: float = 10.0, length_first: bool = False, batch: int = 1) -> Any:
    """A maker of q, k, v for shapes (heads, length, d)."""

    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        h, length, d = shape
        size = (batch, length, h, d) if length_first else (batch, h, length, d)
        return tuple(draw(generator, size, dtype, scale, large) for _ in range(3))

    return make


def labels(generator: torch.Generator, count: int, classes: int, ignore_index: int | None = -100) -> Tensor:
    """Class indices, every fifth of which is ignored if there is an index for it."""
    drawn = torch.randint(classes, (count,), generator=generator)
    if ignore_index is not None:
        drawn[4::5] = ignore_index
    return drawn
