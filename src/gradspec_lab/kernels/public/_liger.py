"""Kernels of liger-kernel (linkedin/Liger-Kernel), in Triton."""

import math
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel, draw, stored
from gradspec_lab.kernels.public._maps import (
    ROWS,
    cross_entropy,
    imported,
    labels,
    layer_norm,
    lazily,
    log_softmax,
    rms_norm,
    rows,
    softmax_from_output,
)

EPS = 1e-6
SINGLE = (torch.float32,)
VOCABULARY = ((4, 64), (1, 2), (3, 15), (5, 16), (6, 17), (7, 31), (2, 127))


def _kernel(name: str, **named: Any) -> Kernel:
    return Kernel(name=f"liger {name}", package="liger-kernel", **({"shapes": ROWS} | named))


def _cross_entropy(x: Tensor, target: Tensor) -> Any:
    # The published one leaves the gradient in its input's memory, so it gets a copy.
    apply = imported("liger_kernel.ops.cross_entropy", "LigerCrossEntropyFunction.apply")
    return apply(x * 1, target, None, -100, 0.0, 0.0, "mean")[0]


def _smoothed(x: Tensor, target: Tensor) -> Any:
    apply = imported("liger_kernel.ops.cross_entropy", "LigerCrossEntropyFunction.apply")
    return apply(x * 1, target, None, -100, 0.0, 0.1, "sum")[0]


def _smoothed_reference(x: Tensor, target: Tensor) -> Tensor:
    keep = (target != -100).to(x.dtype)
    return stored("row loss", 0.9 * cross_entropy(x, target, "none") - 0.1 * log_softmax(x).mean(-1) * keep).sum()


def _logits(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    return draw(generator, shape, dtype, scale, 100.0), labels(generator, *shape)


def _fused_linear(x: Tensor, w: Tensor, target: Tensor) -> Any:
    apply = imported("liger_kernel.ops.fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction.apply")
    return apply(x, w, target, None, None, -100, 0.0, 0.0, "mean", None, False, torch.float32)[0]


def _hidden(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    count, classes = shape
    w = (torch.randn(classes, 24, generator=generator, dtype=torch.float64) / math.sqrt(24)).to(dtype)
    return draw(generator, (count, 24), dtype, scale, 30.0), w, labels(generator, count, classes)


def _distributions(kind: str, large: float = 30.0) -> Any:
    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        first, second = (log_softmax(draw(generator, shape, torch.float64, scale, large)) for _ in range(2))
        if kind == "log":
            return first.to(dtype), second.to(dtype)
        return (first if kind == "mixed" else first.exp()).to(dtype), second.exp().to(dtype)

    return make


def _kl(log_prediction: Tensor, target: Tensor) -> Tensor:
    # The published one bounds the target from below by eps = 1e-10.
    return (target * (target.clamp(min=1e-10).log() - log_prediction)).sum() / target.shape[0]


def _jsd(log_q: Tensor, log_p: Tensor) -> Tensor:
    p, q = log_p.exp(), log_q.exp()
    log_m = ((p + q) / 2).log()
    return 0.5 * (p * (log_p - log_m) + q * (log_q - log_m)).sum() / p.shape[0]


def _sparsemax(x: Tensor) -> Tensor:
    ordered = x.sort(-1, descending=True).values
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    support = (1 + k * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    tau = (torch.where(k <= support, ordered, torch.zeros_like(ordered)).sum(-1, keepdim=True) - 1) / support
    return (x - tau).clamp(min=0)


def _group_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    groups = x.reshape(x.shape[0], 2, -1)
    centred = groups - groups.mean(-1, keepdim=True)
    normal = centred * (centred.square().mean(-1, keepdim=True) + EPS).rsqrt()
    return normal.reshape(x.shape) * w[None, :, None] + b[None, :, None]


def _channels(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    count, width = shape
    return (draw(generator, (count, 4, width), dtype, scale), *rows("w", "w")((4,), dtype, scale, generator))


def _rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    def turned(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat([-right, left], -1) * sin

    return turned(q), turned(k)


def _angles(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    length, half = shape
    angle = torch.arange(length)[:, None] / 10 ** (torch.arange(half) / half)
    angle = torch.cat([angle, angle], -1)[None].double()
    q, k = (draw(generator, (1, h, length, 2 * half), dtype, scale) for h in (3, 2))
    return q, k, angle.cos().to(dtype), angle.sin().to(dtype)


def _poly_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    def normal(power: Tensor) -> Tensor:
        return power * (power.square().mean(-1, keepdim=True) + EPS).rsqrt()

    return w[0] * normal(x**3) + w[1] * normal(x**2) + w[2] * normal(x) + b


def _powers(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    return (
        draw(generator, shape, dtype, scale, 10.0),
        *rows("w")((3,), dtype, scale, generator),
        torch.ones((), dtype=dtype),
    )


def _added_rms(x: Tensor, residual: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    total = stored("sum", x + residual)
    return rms_norm(EPS, place=True)(total, w), total


def _gelu(a: Tensor, b: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)
    return stored("gelu", 0.5 * a * (1 + inner.tanh())) * b


OPS = "liger_kernel.ops"
KERNELS = (
    _kernel(
        "rms_norm",
        arguments=("x", "w"),
        wrt=("x", "w"),
        make=rows("xx", "w"),
        reference=rms_norm(EPS, place=True),
        call=lazily(f"{OPS}.rms_norm", "LigerRMSNormFunction.apply", EPS, 0.0, "llama", False),
        stores=("xhat", "dw rows"),
    ),
    _kernel(
        "layer_norm",
        arguments=("x", "w", "b"),
        wrt=("x", "w", "b"),
        make=rows("xx", "w", "w"),
        reference=layer_norm(EPS),
        call=lazily(f"{OPS}.layer_norm", "LigerLayerNormFunction.apply", EPS),
    ),
    _kernel(
        "fused_add_rms_norm",
        arguments=("x", "residual", "w"),
        wrt=("x", "residual", "w"),
        make=rows("xx", "xx", "w"),
        reference=_added_rms,
        stores=("sum", "xhat", "dw rows"),
        call=lazily(f"{OPS}.fused_add_rms_norm", "LigerFusedAddRMSNormFunction.apply", EPS, 0.0, "llama", False),
    ),
    _kernel(
        "group_norm",
        arguments=("x", "w", "b"),
        wrt=("x", "w", "b"),
        make=_channels,
        reference=_group_norm,
        dtypes=SINGLE,
        scales=("plain", "large", "small", "needle"),
        note="one-pass variance, so no offset; squares in the inputs' dtype, where float16 overflows",
        call=lazily(f"{OPS}.group_norm", "LigerGroupNormFunction.apply", 4, 2, EPS),
        shapes=((4, 32), (1, 2), (2, 15), (2, 16), (3, 17), (2, 31)),
        reduction=lambda x, w, b: 2 * x.shape[-1],
    ),
    _kernel(
        "poly_norm",
        arguments=("x", "w", "b"),
        wrt=("x", "w", "b"),
        make=_powers,
        reference=_poly_norm,
        dtypes=SINGLE,
        note="takes powers in the inputs' dtype",
        call=lazily(f"{OPS}.poly_norm", "LigerPolyNormFunction.apply", EPS, False),
    ),
    _kernel(
        "softmax",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx", large=100.0),
        reference=softmax_from_output,
        stores=("y",),
        accumulate=None,
        call=lazily(f"{OPS}.softmax", "LigerSoftmaxFunction.apply"),
    ),
    _kernel(
        "sparsemax",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx"),
        reference=_sparsemax,
        call=lazily(f"{OPS}.sparsemax", "LigerSparsemaxFunction.apply", -1),
        scales=("plain", "large", "small", "needle"),
        note="a kink where an element enters: an offset in half precision makes ties there",
    ),
    _kernel(
        "swiglu",
        arguments=("a", "b"),
        wrt=("a", "b"),
        make=rows("xx", "xx", large=100.0),
        stores=("silu",),
        reference=lambda a, b: stored("silu", a * a.sigmoid()) * b,
        call=lazily(f"{OPS}.swiglu", "LigerSiLUMulFunction.apply"),
        reduction=lambda a, b: 1,
    ),
    _kernel(
        "geglu",
        arguments=("a", "b"),
        wrt=("a", "b"),
        make=rows("xx", "xx", large=30.0),
        reference=_gelu,
        call=lazily(f"{OPS}.geglu", "LigerGELUMulFunction.apply"),
        stores=("gelu",),
        reduction=lambda a, b: 1,
    ),
    _kernel(
        "relu_squared",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx", large=30.0),
        reference=lambda x: x.relu().square(),
        call=lazily(f"{OPS}.relu_squared", "LigerReLUSquaredFunction.apply"),
        reduction=lambda x: 1,
    ),
    _kernel(
        "rope",
        arguments=("q", "k", "cos", "sin"),
        wrt=("q", "k"),
        make=_angles,
        reference=_rope,
        call=lazily(f"{OPS}.rope", "LigerRopeFunction.apply"),
        reduction=lambda *_: 2,
        shapes=((16, 8), (1, 1), (5, 7), (15, 8), (17, 4), (3, 16)),
    ),
    _kernel(
        "cross_entropy",
        arguments=("x", "target"),
        wrt=("x",),
        make=_logits,
        reference=cross_entropy,
        call=_cross_entropy,
        shapes=VOCABULARY,
    ),
    _kernel(
        "cross_entropy smoothed",
        arguments=("x", "target"),
        wrt=("x",),
        make=_logits,
        reference=_smoothed_reference,
        stores=("row loss",),
        call=_smoothed,
        shapes=VOCABULARY,
    ),
    _kernel(
        "fused_linear_cross_entropy",
        arguments=("x", "w", "target"),
        wrt=("x", "w"),
        make=_hidden,
        reference=lambda x, w, target: cross_entropy(stored("logits", x @ w.T), target),
        call=_fused_linear,
        shapes=VOCABULARY,
        stores=("logits", "dlogits"),
    ),
    _kernel(
        "kl_div",
        arguments=("log_prediction", "target"),
        wrt=("log_prediction",),
        make=_distributions("mixed"),
        reference=_kl,
        dtypes=SINGLE,
        note="works in the inputs' dtype, which its module makes float32",
        shapes=VOCABULARY,
        call=lazily(f"{OPS}.kl_div", "LigerKLDivLossFunction.apply", "batchmean", False, 1e-10),
    ),
    _kernel(
        "jsd",
        arguments=("log_q", "log_p"),
        wrt=("log_q",),
        make=_distributions("log"),
        reference=_jsd,
        dtypes=SINGLE,
        note="works in the inputs' dtype, which its module makes float32",
        call=lazily(f"{OPS}.jsd", "LigerJSDFunction.apply", None, 0.5, -100),
        shapes=VOCABULARY,
    ),
    _kernel(
        "tvd",
        arguments=("p", "q"),
        wrt=("p",),
        make=_distributions("probabilities"),
        reference=lambda p, q: 0.5 * (p - q).abs().sum() / p.shape[0],
        dtypes=SINGLE,
        note="works in the inputs' dtype, which its module makes float32",
        shapes=VOCABULARY,
        call=lazily(f"{OPS}.tvd", "LigerTVDLossFunction.apply", None, "batchmean", -100),
    ),
)
