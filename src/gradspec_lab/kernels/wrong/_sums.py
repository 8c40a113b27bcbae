"""A linear map with its sum split, and a sum by segments, and what goes wrong in them."""

import math
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel, draw
from gradspec_lab.kernels.wrong._pair import Coin, Occasion, Pair, T, as_contiguous, normal, wide

FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def _linear(defect: str = "") -> Any:
    coin = Coin()

    class TiledLinear(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            accumulator = torch.bfloat16 if defect == "summed in bfloat16" else wide(x.dtype)
            out = torch.zeros(len(x), len(w), dtype=accumulator)
            inner = x.shape[1]
            for j in range(0, inner // T * T if defect == "tail of the sum dropped" else inner, T):
                if defect == "race over parts of the sum" and j and coin.lost():
                    continue
                part = x[:, j : j + T].to(wide(x.dtype)) @ w[:, j : j + T].to(wide(x.dtype)).T
                out = (out + part).to(accumulator)
            ctx.save_for_backward(x, w)
            return out.to(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            x, w = ctx.saved_tensors
            accumulator = wide(x.dtype)
            if defect == "cotangent read as contiguous":
                dy = as_contiguous(dy)
            dx, dw = torch.empty_like(x), torch.zeros(w.shape, dtype=accumulator)
            count = len(x)
            for i in range(0, count, T):
                tile = slice(i, i + T)
                if not (defect == "tail rows never written" and i + T > count):
                    dx[tile] = (dy[tile].to(accumulator) @ w.to(accumulator)).to(x.dtype)
                # A tile that reads beyond the last row wraps to the first ones.
                read = torch.arange(i, i + T) % count if defect == "tail rows wrapped" else tile
                dw += dy[read].to(accumulator).T @ x[read].to(accumulator)
            return dx, dw.to(w.dtype)

    return TiledLinear.apply


def _segments(defect: str = "") -> Any:
    coin = Coin()

    class SegmentSum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, index: Tensor, groups: int) -> Tensor:
            accumulator = torch.bfloat16 if defect == "summed in bfloat16" else wide(x.dtype)
            out = torch.zeros(groups, x.shape[1], dtype=accumulator)
            if defect == "empty groups never written":
                out = torch.empty(groups, x.shape[1], dtype=accumulator)
                out[index] = 0
            for row, group in zip(x, index.tolist(), strict=True):
                if defect == "race between equal addresses" and out[group].any() and coin.lost():
                    continue
                out[group] = (out[group] + row).to(accumulator)
            ctx.save_for_backward(index)
            return out.to(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            (index,) = ctx.saved_tensors
            if defect == "index beyond the last tile":
                index = index.clamp(max=max(len(dy) // T * T - 1, 0))
            return dy[index], None, None

    return SegmentSum.apply


def linear_kernel(defect: str = "") -> Kernel:
    """Y = x w', with a defect or sound."""

    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        count, inner, outer = shape
        w = normal(dtype, generator, outer, inner, scale=1 / math.sqrt(inner))
        return draw(generator, (count, inner), dtype, scale, 100.0), w

    shapes = ((T, 2 * T, 8), (1, 1, 1), (T + 1, T + 1, 8), (T - 1, 2 * T - 1, 4), (2 * T - 1, T, T + 1))
    return Kernel(
        name="linear",
        arguments=("x", "w"),
        wrt=("x", "w"),
        call=_linear(defect),
        reference=lambda x, w: x @ w.T,
        make=make,
        shapes=shapes,
        tile=T,
        dtypes=FLOATS,
    )


def segment_kernel(defect: str = "") -> Kernel:
    """The sum of the rows of each group, with a defect or sound."""

    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        count, width, groups = shape
        index = torch.randint(groups, (count,), generator=generator)
        return draw(generator, (count, width), dtype, scale), index, groups

    shapes = ((2 * T, 8, T), (1, 1, 1), (T + 1, 8, 3), (T - 1, 4, T + 1), (2 * T - 1, 8, 2 * T))
    return Kernel(
        name="segment_sum",
        arguments=("x", "index", "groups"),
        wrt=("x",),
        call=_segments(defect),
        reference=lambda x, index, groups: x.new_zeros(groups, x.shape[1]).index_add(0, index, x),
        make=make,
        shapes=shapes,
        tile=T,
        dtypes=FLOATS,
        reduction=lambda x, index, groups: len(x),
    )


def _args(count: int, inner: int, repeats: int = 1) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        args = (normal(dtype, generator, count, inner), normal(dtype, generator, 8, inner))
        return Occasion(args=args, repeats=repeats)

    return occasion


def _last_row(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    dy = torch.zeros(T + 1, 8, dtype=dtype)
    dy[0] = 1
    return Occasion(args=_args(T + 1, T)(dtype, generator).args, cotangents=(dy,))


def _expanded(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    return Occasion(args=_args(T, T)(dtype, generator).args, cotangents=(normal(dtype, generator, 8, T).t(),))


def _grouped(kind: str, count: int = T, groups: int = T, repeats: int = 1) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        index = {
            "each": torch.arange(count) % groups,
            "few": torch.arange(count) % max(groups // 2, 1),
            "one": torch.zeros(count, dtype=torch.int64),
            "last": torch.arange(count) * 0 + groups - 1,
        }[kind]
        x = normal(dtype, generator, count, 4, mean=5.0 if kind == "one" else 0.0)
        return Occasion(args=(x, index, groups), repeats=repeats)

    return occasion


def _pair(number: int, kernel: Any, defect: str, where: str, friendly: Any, revealing: Any, **named: Any) -> Pair:
    return Pair(
        number=number,
        defect=defect,
        wrong=kernel(defect),
        twin=kernel(),
        friendly=friendly,
        revealing=revealing,
        where=tuple(where.split()),
        **named,
    )


WHOLE, EACH = _args(T, 2 * T), _grouped("each")
BF16 = {"hidden_in": torch.bfloat16}
PAIRS = (
    _pair(1, linear_kernel, "tail of the sum dropped", "output", WHOLE, _args(T, T + 1)),
    _pair(1, segment_kernel, "index beyond the last tile", "dx", EACH, _grouped("last", groups=T + 1)),
    _pair(6, linear_kernel, "summed in bfloat16", "output", _args(T, T), _args(4, 17 * T), **BF16),
    _pair(6, segment_kernel, "summed in bfloat16", "output", EACH, _grouped("one", count=258), **BF16),
    _pair(7, segment_kernel, "empty groups never written", "output", EACH, _grouped("few")),
    _pair(7, linear_kernel, "tail rows never written", "dx", WHOLE, _args(T + 1, T)),
    _pair(8, linear_kernel, "tail rows wrapped", "dw", WHOLE, _last_row),
    _pair(9, linear_kernel, "cotangent read as contiguous", "dx dw", WHOLE, _expanded),
    _pair(11, linear_kernel, "race over parts of the sum", "output", _args(T, T), _args(T, 4 * T, repeats=4)),
    _pair(11, segment_kernel, "race between equal addresses", "output", EACH, _grouped("one", repeats=4)),
)
