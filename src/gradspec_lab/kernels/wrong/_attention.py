"""Attention over tiles of keys, with its five-product backward, and what goes wrong in it."""

import math
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel, draw
from gradspec_lab.kernels.wrong._pair import Occasion, Pair, T, normal, wide

#: (queries, keys, width)
SHAPES = ((2 * T, 2 * T, 8), (1, 1, 8), (T + 1, T + 1, 8), (T - 1, 2 * T - 1, 8), (2 * T - 1, 2 * T - 1, 8))


def _visible(queries: int, keys: int, j: int, width: int, defect: str) -> Tensor:
    """Which keys of the tile from j on a query sees: those up to its own, counted from the end."""
    i, k = torch.arange(queries)[:, None], torch.arange(j, j + width)[None]
    shift = 0 if defect == "mask aligned to the first key" else keys - queries
    if defect == "mask off by one in a tail tile" and j + T > keys:
        shift += 1
    return (k <= i + shift) & (k < keys + T * (defect == "padding counted"))


def _tiled(defect: str, causal: bool) -> Any:
    class TiledAttention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
            accumulator = wide(q.dtype)
            queries, keys = len(q), len(k)
            out = torch.zeros(queries, v.shape[1], dtype=accumulator)
            top = torch.full((queries, 1), -torch.inf, dtype=accumulator)
            total = torch.zeros(queries, 1, dtype=accumulator)
            ctx.tiles = range(0, keys // T * T if defect == "tail keys dropped" and keys >= T else keys, T)
            for j in ctx.tiles:
                scores = TiledAttention.scores(q, k, scale, j)
                new = torch.maximum(top, scores.amax(-1, keepdim=True))
                weights = torch.where(new.isfinite(), (scores - new).exp(), 0.0)
                shrink = torch.where(top.isfinite(), (top - new).exp(), 0.0)
                total = total * shrink + weights.sum(-1, keepdim=True)
                values = torch.nn.functional.pad(v[j : j + T], (0, 0, 0, T - len(v[j : j + T])))
                out = (out if defect == "no rescaling" else out * shrink) + weights.to(q.dtype).to(
                    accumulator
                ) @ values.to(accumulator)
                top = new
            out = out / total
            ctx.scale = scale
            ctx.save_for_backward(q, k, v, out.to(q.dtype), top + total.log())
            return out.to(q.dtype)

        @staticmethod
        def scores(q: Tensor, k: Tensor, scale: float, j: int) -> Tensor:
            accumulator = wide(q.dtype)
            tile = torch.nn.functional.pad(k[j : j + T], (0, 0, 0, T - len(k[j : j + T]))).to(accumulator)
            scores = q.to(accumulator) @ tile.T * scale
            visible = _visible(len(q), len(k), j, T, defect)
            if not causal:
                visible = (torch.arange(j, j + T) < len(k) + T * (defect == "padding counted")).expand(len(q), T)
            return scores.masked_fill(~visible, -torch.inf)

        @staticmethod
        def backward(ctx: Any, dout: Tensor) -> Any:
            q, k, v, out, logsum = ctx.saved_tensors
            accumulator = wide(q.dtype)
            kept = out.to(torch.bfloat16) if defect == "delta from a rounded output" else out
            delta = (dout.to(accumulator) * kept).sum(-1, keepdim=True)
            if defect == "delta lost":
                delta = torch.zeros_like(delta)
            scale = 1 / math.sqrt(q.shape[1]) if defect == "scale not in the gradient" else ctx.scale
            dq = torch.zeros(q.shape, dtype=accumulator)
            dk, dv = torch.zeros_like(k), torch.zeros_like(v)
            if defect == "keys of the tail never written":
                dk = torch.empty_like(k)
            for j in ctx.tiles:
                here = slice(j, j + T)
                width = len(k[here])
                weights = (TiledAttention.scores(q, k, ctx.scale, j) - logsum).exp()[:, :width]
                weights = torch.nan_to_num(weights)
                dscores = weights * (dout.to(accumulator) @ v[here].T.to(accumulator) - delta) * scale
                dscores = dscores.to(q.dtype).to(accumulator)
                dq += dscores @ k[here].to(accumulator)
                dv[here] = (weights.to(q.dtype).to(accumulator).T @ dout.to(accumulator)).to(v.dtype)
                if defect == "keys of the tail never written" and width < T:
                    continue
                dk[here] = (dscores.T @ q.to(accumulator)).to(k.dtype)
            return dq.to(q.dtype), dk, dv, None

    return TiledAttention.apply


def _reference(causal: bool) -> Any:
    def attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        scores = q @ k.T * scale
        if causal:
            scores = scores.masked_fill(~_visible(len(q), len(k), 0, len(k), ""), -torch.inf)
        scores = (scores - scores.amax(-1, keepdim=True).detach()).exp()
        return scores / scores.sum(-1, keepdim=True) @ v

    return attention


def attention_kernel(defect: str = "", causal: bool = True) -> Kernel:
    """Attention over (length, width), causal or full, with a defect or sound."""

    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        queries, keys, width = shape
        q, k, v = (draw(generator, (n, width), dtype, scale, 10.0) for n in (queries, keys, keys))
        return q, k, v, 1 / math.sqrt(width)

    return Kernel(
        name="causal attention" if causal else "attention",
        arguments=("q", "k", "v", "scale"),
        wrt=("q", "k", "v"),
        call=_tiled(defect, causal),
        reference=_reference(causal),
        make=make,
        shapes=SHAPES,
        tile=T,
        dtypes=(torch.bfloat16, torch.float16, torch.float32, torch.float64),
        stores=("P", "dS"),
        reduction=lambda q, k, v, scale: max(len(k), len(q)),
    )


def _args(queries: int, keys: int, scale: float | None = None, large: float = 1.0, order: int = 0) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        q, k, v = (normal(dtype, generator, n, 8, scale=large) for n in (queries, keys, keys))
        if order:
            # All queries alike, and the keys by their score: rising or falling.
            q = q[:1].expand(queries, 8).contiguous()
            k = k[(k.double() @ q[0].double() * order).argsort()]
        return Occasion(args=(q, k, v, scale or 1 / math.sqrt(8)))

    return occasion


def _negative(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    q, k, v, scale = _args(T, T + 1)(dtype, generator).args
    return Occasion(args=(q.abs(), -k.abs() - 2, v, scale))


def _one_value(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    """A cotangent with no part along the output: delta is zero."""
    q, k, v, scale = _args(2 * T, 2 * T)(dtype, generator).args
    out = _reference(True)(q, k, v, scale)
    dout = normal(dtype, generator, 2 * T, 8)
    return Occasion(
        args=(q, k, v, scale),
        cotangents=(dout - out * (dout * out).sum(-1, keepdim=True) / out.square().sum(-1, keepdim=True),),
    )


def _pair(
    number: int, defect: str, where: str, friendly: Any, revealing: Any, causal: bool = True, **named: Any
) -> Pair:
    return Pair(
        number=number,
        defect=defect,
        wrong=attention_kernel(defect, causal),
        twin=attention_kernel("", causal),
        friendly=friendly,
        revealing=revealing,
        where=tuple(where.split()),
        **named,
    )


WHOLE = _args(2 * T, 2 * T)
ALL = "output dq dk dv"
PAIRS = (
    _pair(1, "tail keys dropped", ALL, WHOLE, _args(T + 1, T + 1), causal=False),
    _pair(2, "padding counted", ALL, WHOLE, _negative, causal=False),
    _pair(3, "mask off by one in a tail tile", ALL, WHOLE, _args(2 * T - 1, 2 * T - 1)),
    _pair(3, "mask aligned to the first key", ALL, WHOLE, _args(T - 1, 2 * T - 1)),
    _pair(4, "no rescaling", "output dq dk", _args(T, 2 * T, order=-1), _args(T, 2 * T, order=1), causal=False),
    _pair(7, "keys of the tail never written", "dk", WHOLE, _args(T + 1, T + 1)),
    _pair(10, "delta lost", "dq dk", _one_value, WHOLE),
    _pair(10, "delta from a rounded output", "dq dk", WHOLE, _args(2 * T, 2 * T, large=3.0), hidden_in=torch.bfloat16),
    _pair(12, "scale not in the gradient", "dq dk", WHOLE, _args(2 * T, 2 * T, scale=0.2)),
)
