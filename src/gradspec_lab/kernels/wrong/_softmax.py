"""Softmax and cross-entropy over tiles of columns, with a running maximum, and what goes wrong in them."""

from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._kernel import Kernel, draw
from gradspec_lab.kernels.public._maps import cross_entropy, log_softmax, rows, softmax
from gradspec_lab.kernels.wrong._pair import Occasion, Pair, T, as_contiguous, normal, wide

SHAPES = ((T, 2 * T), (1, 1), (T - 1, T + 1), (T, T - 1), (T + 1, 2 * T - 1), (2 * T - 1, 2 * T))
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def running_sum(x: Tensor, defect: str) -> tuple[Tensor, Tensor]:
    """The maximum of each row, and the sum of exp(x - maximum), tile by tile."""
    accumulator = wide(x.dtype)
    top = torch.full((x.shape[0], 1), -torch.inf, dtype=accumulator)
    total = torch.zeros(x.shape[0], 1, dtype=accumulator)
    last = max(x.shape[1] // T * T, min(T, x.shape[1])) if defect == "tail columns dropped" else x.shape[1]
    for j in range(0, last, T):
        tile = x[:, j : min(j + T, last)].to(accumulator)
        if defect == "padding counted":
            # The columns beyond the end are loaded as zeros, and stay.
            tile = torch.nn.functional.pad(tile, (0, T - tile.shape[1]))
        new = torch.maximum(top, tile.amax(-1, keepdim=True))
        if defect == "no maximum subtracted":
            new = torch.zeros_like(top)
        if defect != "no rescaling" and j:
            total = total * (top - new).exp()
        total = total + (tile - new).exp().sum(-1, keepdim=True)
        top = new
    return top, total


def _softmax(defect: str = "") -> Any:
    cache: dict[int, tuple[Tensor, Tensor]] = {}  # the input too: memory that is freed would be given to others

    class TiledSoftmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, temperature: float) -> Tensor:
            scaled = x.to(wide(x.dtype)) / temperature
            top, total = running_sum(scaled, defect)
            y = (scaled - top).exp() / total
            if defect == "cached by address":
                _, y = cache.setdefault(x.data_ptr(), (x.detach(), y))
            kept = y.to(torch.bfloat16).to(y.dtype) if defect == "gradient from a rounded output" else y
            ctx.save_for_backward(kept)
            ctx.temperature = 1.0 if defect == "temperature not in the gradient" else temperature
            return y.to(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            (y,) = ctx.saved_tensors
            if defect == "cotangent read as contiguous":
                dy = as_contiguous(dy)
            dx = y * (dy - (dy * y).sum(-1, keepdim=True)) / ctx.temperature
            return dx.to(dy.dtype), None

    return TiledSoftmax.apply


def _loss(defect: str = "") -> Any:
    class TiledCrossEntropy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, target: Tensor, smoothing: float) -> Tensor:
            keep = target != -100
            if defect == "ignored rows counted in the last tile":
                keep = keep.clone()
                keep[x.shape[0] // T * T :] = True
            wide_x = x.to(wide(x.dtype))
            top, total = running_sum(wide_x, defect)
            index = target.clamp(min=0)[:, None]
            loss = (top + total.log()).squeeze(1) - (1 - smoothing) * wide_x.gather(1, index).squeeze(1)
            loss = loss - smoothing * wide_x.mean(-1)
            count = keep.sum().clamp(min=1)
            gradient = (wide_x - top).exp() / total
            if defect != "smoothing not in the gradient":
                gradient = gradient - smoothing / x.shape[1]
            hot = torch.full_like(index, 1, dtype=gradient.dtype)
            if defect != "smoothing not in the gradient":
                hot = hot * (1 - smoothing)
            gradient = gradient.scatter_add(1, index, -hot)
            ctx.save_for_backward(torch.where(keep[:, None], gradient / count, torch.zeros_like(gradient)))
            return (torch.where(keep, loss, torch.zeros_like(loss)).sum() / count).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> Any:
            (gradient,) = ctx.saved_tensors
            return (gradient if defect == "cotangent taken for one" else gradient * dy).to(dy.dtype), None, None

    return TiledCrossEntropy.apply


def _loss_reference(x: Tensor, target: Tensor, smoothing: float) -> Tensor:
    keep = target != -100
    smooth = (log_softmax(x).mean(-1) * keep.to(x.dtype)).sum() / keep.sum().clamp(min=1)
    return (1 - smoothing) * cross_entropy(x, target) - smoothing * smooth


def softmax_kernel(defect: str = "") -> Kernel:
    """Softmax at a temperature, with a defect or sound."""
    make = rows("xx", large=100.0)
    return Kernel(
        name="softmax",
        arguments=("x", "temperature"),
        wrt=("x",),
        call=_softmax(defect),
        dtypes=FLOATS,
        reference=lambda x, temperature: softmax(x / temperature),
        make=lambda *given: (*make(*given), 1.0),
        shapes=SHAPES,
        tile=T,
    )


def loss_kernel(defect: str = "") -> Kernel:
    """Mean cross-entropy with smoothed labels and ignored rows, with a defect or sound."""

    def make(shape: tuple[int, ...], dtype: torch.dtype, scale: str, generator: torch.Generator) -> tuple[Any, ...]:
        target = torch.randint(shape[1], shape[:1], generator=generator)
        target[4::5] = -100
        return draw(generator, shape, dtype, scale, 100.0), target, 0.0

    return Kernel(
        name="cross_entropy",
        arguments=("x", "target", "smoothing"),
        wrt=("x",),
        call=_loss(defect),
        dtypes=FLOATS,
        reference=_loss_reference,
        make=make,
        shapes=SHAPES,
        tile=T,
    )


def _args(count: int, columns: int, mean: float = 0.0, scale: float = 1.0, temperature: float = 1.0) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        return Occasion(args=(normal(dtype, generator, count, columns, mean=mean, scale=scale), temperature))

    return occasion


def _loss_args(
    count: int, columns: int, mean: float = 0.0, smoothing: float = 0.0, ignored: int | None = None, one: bool = False
) -> Any:
    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        target = torch.randint(columns, (count,), generator=generator)
        if ignored is not None:
            target[ignored] = -100
        cotangents = (torch.ones((), dtype=dtype),) if one else None
        x = normal(dtype, generator, count, columns, mean=mean)
        return Occasion(args=(x, target, smoothing), cotangents=cotangents)

    return occasion


def _falling(kind: Any) -> Any:
    """The largest of each row comes first: nothing is to be rescaled."""

    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        given = kind(dtype, generator)
        return Occasion(args=(given.args[0].sort(-1, descending=True).values, *given.args[1:]))

    return occasion


def _rising(kind: Any) -> Any:
    """The largest of each row is in the last tile, the second largest in the first."""

    def occasion(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
        given = kind(dtype, generator)
        x = given.args[0].clone()
        x[:, 0], x[:, -1] = 4, 5
        return Occasion(args=(x, *given.args[1:]))

    return occasion


def _transposed(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    given = _args(T, 2 * T)(dtype, generator)
    return Occasion(args=given.args, cotangents=(normal(dtype, generator, 2 * T, T).t(),))


def _reused(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    def before(call: Any, args: tuple[Any, ...]) -> None:
        x = args[0]
        kept = x.detach().clone()
        with torch.no_grad():
            x.copy_(torch.linspace(-1, 1, x.numel()).view(x.shape))
            call(*args)
            x.copy_(kept)

    return Occasion(args=_args(T, 2 * T)(dtype, generator).args, before=before)


def _two(dtype: torch.dtype, generator: torch.Generator) -> Occasion:
    """Powers of two: bfloat16 holds each probability."""
    return Occasion(args=(torch.zeros(T, T, dtype=dtype), 1.0))


def _pair(number: int, kernel: Any, defect: str, where: str, friendly: Any, revealing: Any) -> Pair:
    return Pair(
        number=number,
        defect=defect,
        wrong=kernel(defect),
        twin=kernel(),
        friendly=friendly,
        revealing=revealing,
        where=tuple(where.split()),
    )


WHOLE, WHOLE_LOSS = _args(T, 2 * T), _loss_args(T, 2 * T)
BOTH = "output dx"
PAIRS = (
    _pair(1, loss_kernel, "tail columns dropped", BOTH, WHOLE_LOSS, _loss_args(T, T + 1)),
    _pair(2, softmax_kernel, "padding counted", BOTH, WHOLE, _args(T, T + 1, mean=-5)),
    _pair(2, loss_kernel, "padding counted", BOTH, WHOLE_LOSS, _loss_args(T, T + 1, mean=-5)),
    _pair(
        3,
        loss_kernel,
        "ignored rows counted in the last tile",
        BOTH,
        _loss_args(2 * T, T, ignored=3),
        _loss_args(T + 1, T, ignored=-1),
    ),
    _pair(4, softmax_kernel, "no rescaling", BOTH, _falling(WHOLE), _rising(WHOLE)),
    _pair(4, loss_kernel, "no rescaling", BOTH, _falling(WHOLE_LOSS), _rising(WHOLE_LOSS)),
    _pair(5, softmax_kernel, "no maximum subtracted", BOTH, WHOLE, _args(T, T, mean=1000)),
    _pair(5, loss_kernel, "no maximum subtracted", BOTH, WHOLE_LOSS, _loss_args(T, T, mean=1000)),
    _pair(9, softmax_kernel, "cotangent read as contiguous", "dx", WHOLE, _transposed),
    _pair(9, loss_kernel, "cotangent taken for one", "dx", _loss_args(T, T, one=True), WHOLE_LOSS),
    _pair(10, softmax_kernel, "gradient from a rounded output", "dx", _two, WHOLE),
    _pair(12, softmax_kernel, "temperature not in the gradient", "dx", WHOLE, _args(T, T, temperature=0.5)),
    _pair(12, loss_kernel, "smoothing not in the gradient", "dx", WHOLE_LOSS, _loss_args(T, T, smoothing=0.1)),
    _pair(13, softmax_kernel, "cached by address", BOTH, WHOLE, _reused),
)
