"""RMSNorm and LayerNorm in tiles of rows and columns, and what goes wrong in them."""

from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel
from gradspec_lab.kernels.public._maps import rows
from gradspec_lab.kernels.wrong._pair import Coin, Occasion, Pair, T, as_contiguous, normal, wide

SHAPES = ((2 * T, 2 * T), (1, 1), (T - 1, T + 1), (T, T - 1), (T + 1, 2 * T - 1), (2 * T - 1, 2 * T))
EPS = 1e-5


def _rms(defect: str = "") -> Any:
    cache: dict[int, tuple[Tensor, Tensor]] = {}  # the input too: memory that is freed would be given to others
    coin = Coin()

    class TiledRMSNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor, eps: float) -> Tensor:
            count, columns = x.shape
            squares = torch.zeros(count, 1, dtype=wide(x.dtype))
            last = columns // T * T if defect == "tail columns dropped" else columns
            for j in range(0, last, T):
                squares += x[:, j : min(j + T, last)].to(squares.dtype).square().sum(-1, keepdim=True)
            mean = squares / columns
            if defect == "eps outside the root":
                scale = 1 / (mean.sqrt() + eps)
            elif defect == "eps ignored":
                scale = (mean + EPS).rsqrt()
            else:
                scale = (mean + eps).rsqrt()
            if defect == "cached by address":
                _, scale = cache.setdefault(x.data_ptr(), (x.detach(), scale))
            ctx.save_for_backward(x, w, scale)
            return (x * scale * w).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            x, w, scale = ctx.saved_tensors
            count, columns = x.shape
            if defect == "cotangent read as contiguous":
                dy = as_contiguous(dy)
            accumulator = torch.bfloat16 if defect == "dw summed in bfloat16" else scale.dtype
            dw = torch.zeros(columns, dtype=accumulator)
            dx = torch.empty_like(x)
            for i in range(0, count, T):
                tile = slice(i, i + T)
                normal_, g = x[tile] * scale[tile], dy[tile] * w
                mean = 0 if defect == "projection lost" else (g * normal_).sum(-1, keepdim=True) / columns
                dx[tile] = (scale[tile] * (g - normal_ * mean)).to(x.dtype)
                # A tile that reads beyond the last row reads the last row again.
                read = torch.arange(i, i + T).clamp(max=count - 1) if defect == "tail rows repeated" else tile
                if defect == "race over row tiles" and i and coin.lost():
                    continue
                dw += (dy[read] * x[read] * scale[read]).sum(0).to(accumulator)
            return dx, dw.to(w.dtype), None

    return TiledRMSNorm.apply


def _rms_reference(x: Tensor, w: Tensor, eps: float) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * w


def _layer(defect: str = "") -> Any:
    class TiledLayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
            columns = x.shape[1]
            padded = torch.nn.functional.pad(x, (0, -columns % T)).to(wide(x.dtype))
            total = padded.sum(-1, keepdim=True)
            mean = total / columns
            if defect == "variance in one pass":
                variance = padded.square().sum(-1, keepdim=True) / columns - mean.square()
                variance = variance.clamp(min=0)
            else:
                centred = padded - mean
                if defect != "padding in the variance":
                    centred[:, columns:] = 0
                variance = centred.square().sum(-1, keepdim=True) / columns
            scale = 1 / (variance.sqrt() + eps) if defect == "eps outside the root" else (variance + eps).rsqrt()
            ctx.save_for_backward(x, w, mean, scale)
            return ((x - mean) * scale * w + b).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            x, w, mean, scale = ctx.saved_tensors
            count, columns = x.shape
            dx = torch.empty_like(x)
            dw = torch.zeros(columns, dtype=scale.dtype)
            last = count // T * T if defect == "tail rows never written" else count
            for i in range(0, last, T):
                tile = slice(i, min(i + T, last))
                g, normal_ = dy[tile] * w, (x[tile] - mean[tile]) * scale[tile]
                shift = 0 if defect == "mean of the gradient lost" else g.sum(-1, keepdim=True) / columns
                dx[tile] = (scale[tile] * (g - shift - normal_ * (g * normal_).sum(-1, keepdim=True) / columns)).to(
                    x.dtype
                )
            for i in range(0, count, T):
                tile = slice(i, i + T)
                dw += (dy[tile] * (x[tile] - mean[tile]) * scale[tile]).sum(0)
            return dx, dw.to(w.dtype), dy.to(scale.dtype).sum(0).to(w.dtype), None

    return TiledLayerNorm.apply


def _layer_reference(x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * w + b


def rms(defect: str = "") -> Kernel:
    """RMSNorm with a defect, or sound."""
    make = rows("xx", "w")
    return Kernel(
        name="rms_norm",
        arguments=("x", "w", "eps"),
        wrt=("x", "w"),
        call=_rms(defect),
        reference=_rms_reference,
        make=lambda *given: (*make(*given), EPS),
        shapes=SHAPES,
        tile=T,
        dtypes=(torch.bfloat16, torch.float16, torch.float32, torch.float64),
    )


def layer(defect: str = "") -> Kernel:
    """LayerNorm with a defect, or sound."""
    make = rows("xx", "w", "w")
    return Kernel(
        name="layer_norm",
        arguments=("x", "w", "b", "eps"),
        wrt=("x", "w", "b"),
        call=_layer(defect),
        reference=_layer_reference,
        make=lambda *given: (*make(*given), EPS),
        shapes=SHAPES,
        tile=T,
        dtypes=(torch.bfloat16, torch.float16, torch.float32, torch.float64),
    )


def _rms_args(count: int, columns: int, eps: float = EPS, scale: float = 1.0, mean: float = 0.0) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        x = normal(dtype, generator, count, columns, scale=scale, mean=mean)
        return Occasion(args=(x, normal(dtype, generator, columns, scale=0.3, mean=1), eps))

    return occasion


def _layer_args(count: int, columns: int, scale: float = 1.0, mean: float = 0.0, centred: bool = False) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        w, b = normal(dtype, generator, columns, scale=0.3, mean=1), normal(dtype, generator, columns)
        x = normal(dtype, generator, count, columns, scale=scale, mean=mean)
        cotangents = None
        if centred:
            dy = normal(dtype, generator, count, columns)
            cotangents = ((dy - (dy * w).mean(-1, keepdim=True) / w),)
        return Occasion(args=(x, w, b, EPS), cotangents=cotangents)

    return occasion


def _expanded(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    given = _rms_args(T, 2 * T)(dtype, generator)
    return Occasion(
        args=given.args, cotangents=(normal(dtype, generator, 1, 2 * T).expand(T, 2 * T).t().contiguous().t(),)
    )


def _one_hot_last(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    given = _rms_args(T + 1, 2 * T)(dtype, generator)
    dy = torch.zeros(T + 1, 2 * T, dtype=dtype)
    dy[-1] = 1
    return Occasion(args=given.args, cotangents=(dy,))


def _orthogonal(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    x, w, eps = _rms_args(2 * T, 2 * T)(dtype, generator).args
    dy = normal(dtype, generator, 2 * T, 2 * T)
    dy = dy - x * (dy * w * x).sum(-1, keepdim=True) / (w * x * x).sum(-1, keepdim=True)
    return Occasion(args=(x, w, eps), cotangents=(dy,))


def _reused(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    given = _rms_args(T, 2 * T, scale=3.0)(dtype, generator)

    def before(call: Any, args: tuple[Any, ...]) -> None:
        x = args[0]
        kept = x.detach().clone()
        with torch.no_grad():
            x.copy_(torch.linspace(-1, 1, x.numel()).view(x.shape))
            call(*args)
            x.copy_(kept)

    return Occasion(args=given.args, before=before)


def _twice(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    return Occasion(args=_rms_args(3 * T, T)(dtype, generator).args, repeats=4)


def _rms_pair(number: int, defect: str, where: str, friendly: Any, revealing: Any, **named: Any) -> Pair:
    return Pair(
        number=number,
        defect=defect,
        wrong=rms(defect),
        twin=rms(),
        friendly=friendly,
        revealing=revealing,
        where=tuple(where.split()),
        **named,
    )


def _layer_pair(number: int, defect: str, where: str, friendly: Any, revealing: Any, **named: Any) -> Pair:
    return Pair(
        number=number,
        defect=defect,
        wrong=layer(defect),
        twin=layer(),
        friendly=friendly,
        revealing=revealing,
        where=tuple(where.split()),
        **named,
    )


WHOLE = _rms_args(2 * T, 2 * T)
PAIRS = (
    _rms_pair(1, "tail columns dropped", "output dx dw", WHOLE, _rms_args(2 * T, T + 1)),
    _layer_pair(2, "padding in the variance", "output dx dw", _layer_args(T, 2 * T), _layer_args(T, T + 1, mean=3)),
    _rms_pair(
        6, "dw summed in bfloat16", "dw", _rms_args(T, 2 * T), _rms_args(40 * T, T, mean=3), hidden_in=torch.bfloat16
    ),
    _layer_pair(7, "tail rows never written", "dx", _layer_args(2 * T, T), _layer_args(T + 1, T)),
    _rms_pair(8, "tail rows repeated", "dw", WHOLE, _one_hot_last),
    _rms_pair(9, "cotangent read as contiguous", "dx dw", WHOLE, _expanded),
    _rms_pair(10, "projection lost", "dx", _orthogonal, WHOLE),
    _layer_pair(10, "mean of the gradient lost", "dx", _layer_args(T, T, centred=True), _layer_args(T, T)),
    _layer_pair(
        10,
        "variance in one pass",
        "output dx dw",
        _layer_args(T, 2 * T),
        _layer_args(T, T, mean=1e3),
        shown_in=torch.float32,
    ),
    _rms_pair(11, "race over row tiles", "dw", _rms_args(T, 2 * T), _twice),
    _rms_pair(12, "eps outside the root", "output dx dw", _rms_args(T, T, scale=1e4), _rms_args(T, T, scale=EPS**0.5)),
    _rms_pair(12, "eps ignored", "output dx dw", WHOLE, _rms_args(T, T, eps=0.5)),
    _layer_pair(
        12, "eps outside the root", "output dx dw", _layer_args(T, T, scale=1e4), _layer_args(T, T, scale=EPS**0.5)
    ),
    _rms_pair(13, "cached by address", "output dx dw", WHOLE, _reused),
)
