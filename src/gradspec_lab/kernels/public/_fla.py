"""Kernels of flash-linear-attention (fla-org), in Triton.

Its chunked scans (linear attention, gated linear attention, retention) call `.to` on a loop's counter, which
Triton's interpreter keeps as a Python integer: they do not run here. The recurrent ones do.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from gradspec_lab.kernels._kernel import Kernel, draw, stored
from gradspec_lab.kernels.public._liger import VOCABULARY, _hidden, _logits
from gradspec_lab.kernels.public._maps import (
    ROWS,
    cross_entropy,
    flash_attention,
    heads,
    imported,
    layer_norm,
    lazily,
    rows,
    swapped,
)

#: (heads, length, width): a whole number of tiles, one row, and around the tiles of 16, 32 and 64.
SEQUENCES = ((2, 32, 16), (1, 1, 16), (1, 15, 16), (2, 17, 16), (1, 31, 16), (1, 33, 16))


def _kernel(name: str, **named: Any) -> Kernel:
    return Kernel(name=f"fla {name}", package="fla-core", **({"shapes": ROWS} | named))


def _rms_norm_gated(x: Tensor, g: Tensor, w: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w * g * g.sigmoid()


def _gated_call(x: Tensor, g: Tensor, w: Tensor) -> Any:
    return imported("fla.modules.fused_norm_gate", "rms_norm_gated")(x, g, w, None)


def _l2norm(x: Tensor) -> Tensor:
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def _each_loss(x: Tensor, target: Tensor) -> Any:
    return imported("fla.modules.fused_cross_entropy", "cross_entropy_loss")(x, target)[0]


def _fused_linear(x: Tensor, w: Tensor, target: Tensor) -> Any:
    return imported("fla.modules.fused_linear_cross_entropy", "fused_linear_cross_entropy_loss")(x, target, w)


def _rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


def _angles(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    h, length, width = shape
    angle = torch.arange(length).double()[:, None] / 10 ** (torch.arange(width // 2) / width)
    return draw(generator, (1, length, h, width), dtype, scale), angle.cos().to(dtype), angle.sin().to(dtype)


def _shift(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1) - x


def _sequence(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    h, length, width = shape
    return (draw(generator, (h, length, width), dtype, scale),)


def _convolved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    taps, length = w.shape[1], x.shape[1]
    padded = torch.cat([x.new_zeros(x.shape[0], taps - 1, x.shape[2]), x], 1)
    y = sum(padded[:, i : i + length] * w[:, i] for i in range(taps)) + b
    return y * y.sigmoid()


def _filters(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
    _, length, width = shape
    return (
        draw(generator, (1, length, width), dtype, scale, 30.0),
        draw(generator, (width, 4), dtype, "plain"),
        draw(generator, (width,), dtype, "plain"),
    )


def _linear_attention(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None = None) -> Tensor:
    """The state S_t = exp(g_t) S_(t-1) + k_t v_t', read by q_t / sqrt d, as a masked product."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if g is not None:
        total = g.transpose(1, 2).cumsum(-1)
        scores = scores * torch.where(_lower(scores), total[..., :, None] - total[..., None, :], 0.0).exp()
    return (torch.where(_lower(scores), scores, torch.zeros_like(scores)) @ v).transpose(1, 2)


def _lower(scores: Tensor) -> Tensor:
    return torch.ones(scores.shape[-2:], dtype=torch.bool).tril()


def _vector_gated(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
    q = q / math.sqrt(q.shape[-1])
    state = torch.zeros(*q.shape[:1], *q.shape[2:], v.shape[-1], dtype=q.dtype)
    out = []
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None] + k[:, t][..., None] * v[:, t][..., None, :]
        out.append((q[:, t][..., None] * state).sum(-2))
    return torch.stack(out, 1)


def _delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    q = q / math.sqrt(q.shape[-1])
    state = torch.zeros(*q.shape[:1], *q.shape[2:], v.shape[-1], dtype=q.dtype)
    out = []
    for t in range(q.shape[1]):
        seen = (k[:, t][..., None] * state).sum(-2)
        written = beta[:, t][..., None] * (v[:, t] - seen)
        state = state + k[:, t][..., None] * written[..., None, :]
        out.append((q[:, t][..., None] * state).sum(-2))
    return torch.stack(out, 1)


def _hgrn(x: Tensor, g: Tensor) -> Tensor:
    total = g.cumsum(1)[:, :, None] - g.cumsum(1)[:, None]
    lower = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, ..., None]
    decay = torch.where(lower, torch.where(lower, total, 0.0).exp(), torch.zeros_like(total))
    return (decay * x[:, None]).sum(2)


def _with_gate(kind: str) -> Any:
    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        h, length, width = shape
        q, k, v = heads(3.0, length_first=True)(shape, dtype, scale, generator)
        size = (1, length, h, width) if kind == "vector" else (1, length, h)
        gate = draw(generator, size, torch.float64, "plain")
        if kind == "delta":
            k = k.double()
            k = (k / k.norm(dim=-1, keepdim=True)).to(dtype)
            return q, k, v, gate.sigmoid().to(dtype)
        return q, k, v, logsigmoid(gate + 2).to(dtype)

    return make


def _inputs_and_gates(
    shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator
) -> tuple[Any, ...]:
    h, length, width = shape
    size = (1, length, h * width)
    return draw(generator, size, dtype, scale), logsigmoid(draw(generator, size, torch.float64, "plain") + 2).to(dtype)


def _first(path: str, name: str, **named: Any) -> Any:
    return lambda *args: imported(path, name)(*args, **named)[0]


def _length(q: Tensor, *_: Tensor) -> int:
    return max(q.shape[1], q.shape[-1])


KERNELS = (
    _kernel(
        "layer_norm",
        arguments=("x", "w", "b"),
        wrt=("x", "w", "b"),
        make=rows("xx", "w", "w"),
        reference=layer_norm(1e-5),
        call=lazily("fla.modules.layernorm", "layer_norm"),
    ),
    _kernel(
        "rms_norm_gated",
        arguments=("x", "g", "w"),
        wrt=("x", "g", "w"),
        make=rows("xx", "xx", "w", large=100.0),
        reference=_rms_norm_gated,
        call=_gated_call,
    ),
    _kernel(
        "l2norm",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx"),
        reference=_l2norm,
        call=lazily("fla.modules.l2norm", "l2norm"),
    ),
    _kernel(
        "swiglu",
        arguments=("x", "y"),
        wrt=("x", "y"),
        make=rows("xx", "xx", large=100.0),
        reduction=lambda *_: 1,
        reference=lambda x, y: x * x.sigmoid() * y,
        call=lazily("fla.modules.activations", "swiglu"),
    ),
    _kernel(
        "logsigmoid",
        arguments=("x",),
        wrt=("x",),
        make=rows("xx"),
        reference=logsigmoid,
        reduction=lambda *_: 1,
        call=lazily("fla.modules.activations", "logsigmoid"),
        scales=("plain", "small"),
        note="1 - sigmoid(x): loses every digit of its gradient from x = 17 on",
    ),
    _kernel(
        "cross_entropy",
        arguments=("x", "target"),
        wrt=("x",),
        make=_logits,
        shapes=VOCABULARY,
        call=_each_loss,
        reference=lambda x, target: cross_entropy(x, target, "none"),
    ),
    _kernel(
        "fused_linear_cross_entropy",
        arguments=("x", "w", "target"),
        wrt=("x", "w"),
        make=_hidden,
        shapes=VOCABULARY,
        reference=lambda x, w, target: cross_entropy(stored("logits", x @ w.T), target),
        stores=("logits", "dlogits"),
        call=_fused_linear,
    ),
    _kernel(
        "rotary",
        arguments=("x", "cos", "sin"),
        wrt=("x",),
        make=_angles,
        shapes=SEQUENCES,
        reference=_rotary,
        call=lazily("fla.modules.rotary", "rotary_embedding"),
        reduction=lambda *_: 2,
    ),
    _kernel(
        "token_shift",
        arguments=("x",),
        wrt=("x",),
        make=_sequence,
        shapes=SEQUENCES,
        reference=_shift,
        call=lazily("fla.modules.token_shift", "token_shift"),
        reduction=lambda *_: 2,
    ),
    _kernel(
        "causal_conv1d",
        arguments=("x", "w", "b"),
        wrt=("x", "w", "b"),
        make=_filters,
        shapes=SEQUENCES,
        reference=_convolved,
        call=_first("fla.modules.conv", "causal_conv1d", activation="silu"),
    ),
    _kernel(
        "parallel_attn",
        arguments=("q", "k", "v"),
        wrt=("q", "k", "v"),
        make=heads(length_first=True),
        shapes=SEQUENCES,
        reference=swapped(flash_attention),
        stores=("P", "O", "dS"),
        reduction=_length,
        call=lazily("fla.ops.attn", "parallel_attn"),
        tile=64,
    ),
    _kernel(
        "fused_recurrent_linear_attn",
        arguments=("q", "k", "v"),
        wrt=("q", "k", "v"),
        make=heads(3.0, length_first=True),
        shapes=SEQUENCES,
        reference=_linear_attention,
        reduction=_length,
        call=_first("fla.ops.linear_attn", "fused_recurrent_linear_attn", normalize=False),
    ),
    _kernel(
        "fused_recurrent_simple_gla",
        arguments=("q", "k", "v", "g"),
        wrt=("q", "k", "v", "g"),
        make=_with_gate("scalar"),
        shapes=SEQUENCES,
        reference=_linear_attention,
        reduction=_length,
        call=_first("fla.ops.simple_gla", "fused_recurrent_simple_gla"),
    ),
    _kernel(
        "fused_recurrent_gla",
        arguments=("q", "k", "v", "g"),
        wrt=("q", "k", "v", "g"),
        make=_with_gate("vector"),
        shapes=SEQUENCES,
        reference=_vector_gated,
        reduction=_length,
        call=_first("fla.ops.gla", "fused_recurrent_gla"),
    ),
    _kernel(
        "fused_recurrent_delta_rule",
        arguments=("q", "k", "v", "beta"),
        wrt=("q", "k", "v", "beta"),
        make=_with_gate("delta"),
        shapes=SEQUENCES,
        reference=_delta_rule,
        reduction=_length,
        call=_first("fla.ops.delta_rule", "fused_recurrent_delta_rule"),
    ),
    _kernel(
        "fused_recurrent_hgrn",
        arguments=("x", "g"),
        wrt=("x", "g"),
        make=_inputs_and_gates,
        shapes=SEQUENCES,
        reference=_hgrn,
        call=_first("fla.ops.hgrn", "fused_recurrent_hgrn"),
        reduction=_length,
    ),
)
