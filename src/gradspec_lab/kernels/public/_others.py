"""Norms, losses and sparse maps of other packages."""

import math
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel, draw, stored
from gradspec_lab.kernels.public._liger import VOCABULARY, _hidden, _sparsemax
from gradspec_lab.kernels.public._maps import (
    ROWS,
    cross_entropy,
    imported,
    layer_norm,
    lazily,
    rms_norm,
    rows,
)

TRITON_NORMS = "torchnorm._triton"
NO_TIES = ("plain", "large", "small", "needle")


def _kernel(name: str, package: str, **named: Any) -> Kernel:
    return Kernel(name=name, package=package, **({"shapes": ROWS} | named))


def _added(x: Tensor, residual: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    total = stored("sum", x + residual)
    return rms_norm(1e-6)(total, w), total


def _entmax15(x: Tensor) -> Tensor:
    x = (x - x.amax(-1, keepdim=True).detach()) / 2
    ordered = x.sort(-1, descending=True).values
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    mean = ordered.cumsum(-1) / k
    deviation = k * (ordered.square().cumsum(-1) / k - mean.square())
    tau = mean - ((1 - deviation) / k).clamp(min=0).sqrt()
    support = (tau <= ordered).sum(-1, keepdim=True)
    # Of the members alone, so that no square root of a clamped zero enters the gradient.
    member = k <= support
    mean = torch.where(member, ordered, 0.0).sum(-1, keepdim=True) / support
    deviation = torch.where(member, (ordered - mean).square(), 0.0).sum(-1, keepdim=True)
    return (x - (mean - ((1 - deviation) / support).sqrt())).clamp(min=0).square()


def _clip(x: Tensor, y: Tensor) -> Tensor:
    scores = x @ y.T / 0.07
    label = torch.arange(x.shape[0])
    return (cross_entropy(scores, label) + cross_entropy(scores.T, label)) / 2


def _clip_call(x: Tensor, y: Tensor) -> Any:
    apply = imported("memeff.clip_loss", "MemoryEfficientCLIPLossNormed.apply")
    return apply(x, y, 1 / (0.07 * math.log(2)), 1 / 0.07, None, math.exp(-2 / 0.07))


def _unit(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    made = (draw(generator, shape, torch.float64, scale, 30.0) for _ in range(2))
    return tuple((x / x.norm(dim=-1, keepdim=True)).to(dtype) for x in made)


def _cut(x: Tensor, w: Tensor, target: Tensor) -> Any:
    return imported("cut_cross_entropy", "linear_cross_entropy")(x, w, target, impl="torch_compile")


KERNELS = (
    _kernel(
        "torchnorm rms_norm",
        "torchnorm",
        arguments=("x", "w"),
        wrt=("x", "w"),
        make=rows("xx", "w"),
        reference=rms_norm(1e-6),
        call=lazily(TRITON_NORMS, "fused_rms_norm", 1e-6),
    ),
    _kernel(
        "torchnorm layer_norm",
        "torchnorm",
        arguments=("x", "w", "b"),
        wrt=("x", "w", "b"),
        make=rows("xx", "w", "w"),
        reference=layer_norm(1e-5),
        call=lazily(TRITON_NORMS, "fused_layer_norm", 1e-5),
    ),
    _kernel(
        "entmax sparsemax",
        "entmax",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx"),
        reference=_sparsemax,
        call=lazily("entmax", "sparsemax"),
        scales=NO_TIES,
        dtypes=(torch.float32,),
    ),
    _kernel(
        "entmax entmax15",
        "entmax",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx"),
        reference=_entmax15,
        call=lazily("entmax", "entmax15"),
        scales=NO_TIES,
        dtypes=(torch.float32,),
    ),
    _kernel(
        "entmax entmax_bisect",
        "entmax",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx"),
        reference=_entmax15,
        call=lazily("entmax", "entmax_bisect"),
        scales=NO_TIES,
        dtypes=(torch.float32,),
        note="50 halvings, then scaled to sum to one",
    ),
    _kernel(
        "memeff clip_loss",
        "memeff",
        arguments=("x", "y"),
        wrt=("x", "y"),
        make=_unit,
        reference=_clip,
        call=_clip_call,
        note="takes 1 / temperature for the maximum; alone in a batch, a pair has a loss of 0 that it cannot see",
        shapes=((16, 16), (2, 16), (3, 32), (15, 16), (17, 16), (31, 16)),
    ),
    _kernel(
        "cut_cross_entropy torch_compile",
        "cut-cross-entropy",
        arguments=("x", "w", "target"),
        wrt=("x", "w"),
        make=_hidden,
        reference=lambda x, w, target: cross_entropy(x @ w.T, target),
        call=_cut,
        shapes=VOCABULARY,
    ),
)

UNSOUND = (
    _kernel(
        "torchnorm fused_add_rms_norm",
        "torchnorm",
        arguments=("x", "residual", "w"),
        wrt=("x", "residual", "w"),
        make=rows("xx", "xx", "w"),
        reference=_added,
        call=lazily(TRITON_NORMS, "fused_add_rms_norm", 1e-6),
        stores=("sum",),
        note="rounds the sum to bfloat16 in every dtype; drops the gradient of its second output",
    ),
)
