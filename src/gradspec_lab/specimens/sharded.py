"""Functions on DTensors: sound ones, and ones that are right on whole tensors and wrong where they are placed."""

from collections.abc import Iterator
from dataclasses import replace

from torch.autograd import Function

from gradspec.spec import Case, FunctionSpec, Make, Placements, Supports
from gradspec_lab.specimens.diseased import DISEASED, enter
from gradspec_lab.specimens.honest import PRODUCT, SCALE, Product, Scale

__all__ = ["DISEASED", "SHARDED"]

ROWS = (Placements(arguments={"x": "shard(0)"}, output="shard(0)"),)
#: The same, and all of it on each rank.
ROWS_OR_ALL = (Placements(arguments={"x": "replicate"}, output="replicate"), *ROWS)
#: The weight of a product is whole on each rank, as a parameter under data parallelism is.
PARAMETER = (Placements(arguments={"x": "shard(0)", "weight": "replicate"}, output="shard(0)"),)


def is_placed(value):
    return type(value).__name__ == "DTensor"


def labelled(local, placed, placement=None):
    """Return what each rank has as a DTensor, placed as another one is unless told."""
    from torch.distributed.tensor import DTensor

    places = placed.placements if placement is None else [placement]
    size = {"shape": placed.shape, "stride": placed.stride()} if placement is None else {}
    return DTensor.from_local(local, placed.device_mesh, places, **size)


def replicate():
    from torch.distributed.tensor import Replicate

    return Replicate()


def pending():
    from torch.distributed.tensor import Partial

    return Partial()


class ScaleOfShards(Scale):
    """Unwrap a DTensor, compute on what this rank has, and wrap the result as the argument was."""

    @staticmethod
    def forward(x, factor):
        return labelled(x.to_local().clone(), x) if is_placed(x) else x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.placed = x if is_placed(x) else None

    @staticmethod
    def backward(ctx, y_bar):
        if is_placed(y_bar):
            y_bar = y_bar.redistribute(ctx.placed.device_mesh, ctx.placed.placements)
            return labelled(ctx.factor * y_bar.to_local(), y_bar), None
        return ctx.factor * y_bar, None


class Columns(Function):
    """The sums of the columns of x: over ranks that share its rows, the sum that is left is pending."""

    @staticmethod
    def forward(x):
        return x.sum(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.rows = len(inputs[0])

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar.expand(ctx.rows, *y_bar.shape)


def _columns(make: Make) -> Iterator[Case]:
    yield Case(name="rows", args=(make(4, 3),))
    yield Case(name="shards of two sizes", args=(make(5, 3),))


COLUMNS = FunctionSpec(
    name="columns",
    function=Columns.apply,
    primal=lambda x: x.sum(0),
    surrogate=lambda x: x.sum(0),
    wrt=("x",),
    cases=_columns,
    supports=Supports.eager(),
    placements=(Placements(arguments={"x": "shard(0)"}, output="partial"),),
)
SHARDED = (
    replace(SCALE, name="scale_of_rows", placements=ROWS),
    replace(SCALE.for_(ScaleOfShards.apply, name="scale_of_shards"), supports=Supports.eager(), placements=ROWS_OR_ALL),
    replace(PRODUCT, name="product_of_rows", placements=PARAMETER),
    COLUMNS,
)


def sick(name: str, spec: FunctionSpec, function: type[Function], message: str) -> None:
    """Enter a sick twin of a sound function, on DTensors placed as its spec says."""
    sound = spec.for_(function.apply, name=name)
    enter(name, replace(sound, supports=Supports.eager(), placements=spec.placements), sharded=message)


SCALE_OF_ROWS, SCALE_OF_SHARDS, PRODUCT_OF_ROWS, _ = SHARDED


class DropsAPendingSum(Columns):
    @staticmethod
    def forward(x):
        return labelled(x.to_local().sum(0), x, replicate()) if is_placed(x) else x.sum(0)


class DropsThePlacement(Scale):
    @staticmethod
    def forward(x, factor):
        return labelled(x.to_local().clone(), x, replicate()) if is_placed(x) else x.clone()


class GathersTheRows(Scale):
    @staticmethod
    def forward(x, factor):
        return x.redistribute(placements=[replicate()]) if is_placed(x) else x.clone()


class ReturnsAPlainGradient(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * (y_bar.full_tensor() if is_placed(y_bar) else y_bar), None


class TakesAPartForTheSum(ScaleOfShards):
    """Unwrap a cotangent, and wrap the product as the argument was, where each rank had a part of the sum."""

    @staticmethod
    def backward(ctx, y_bar):
        if is_placed(y_bar):
            return labelled(ctx.factor * y_bar.to_local(), ctx.placed), None
        return ctx.factor * y_bar, None


class CountsAPendingSumTwice(Product):
    @staticmethod
    def backward(ctx, y_bar):
        x_bar, weight_bar = Product.backward(ctx, y_bar)
        return x_bar, labelled(weight_bar.full_tensor(), weight_bar, pending()) if is_placed(y_bar) else weight_bar


class MixesTensorsSilently(Product):
    """Take a weight that is a plain tensor for one of this rank, whose gradient is that of the rows of this rank."""

    @staticmethod
    def forward(x, weight):
        if is_placed(x) and not is_placed(weight) and weight.ndim < x.ndim:
            return labelled(x.to_local() * weight, x)
        return x * weight

    @staticmethod
    def setup_context(ctx, inputs, output):
        Product.setup_context(ctx, inputs, output)
        ctx.is_mixed = is_placed(inputs[0]) and not is_placed(inputs[1])

    @staticmethod
    def backward(ctx, y_bar):
        if not ctx.is_mixed:
            return Product.backward(ctx, y_bar)
        x, weight = ctx.saved_tensors
        local = y_bar.to_local()
        return labelled(local * weight, x), (local * x.to_local()).sum_to_size(weight.shape)


class RefusesTheRows(ScaleOfShards):
    @staticmethod
    def forward(x, factor):
        if is_placed(x) and not x.placements[0].is_replicate():
            raise NotImplementedError("a whole tensor only")
        return ScaleOfShards.forward(x, factor)


sick("drops_a_pending_sum", COLUMNS, DropsAPendingSum, r"value with `x` shard\(0\) on rank 0 differs")
sick(
    "drops_the_placement", SCALE_OF_ROWS, DropsThePlacement, r"value with `x` shard\(0\) on rank 0 has the wrong shape"
)
sick("gathers_the_rows", SCALE_OF_ROWS, GathersTheRows, r"value with `x` shard\(0\) is not placed as declared")
sick("returns_a_plain_gradient", SCALE_OF_ROWS, ReturnsAPlainGradient, r"gradient of `x` .* is not a DTensor")
sick("takes_a_part_for_the_sum", SCALE_OF_SHARDS, TakesAPartForTheSum, r"`x` replicate .* partial on rank 0 differs")
sick("counts_a_pending_sum_twice", PRODUCT_OF_ROWS, CountsAPendingSumTwice, r"gradient of `weight` .* differs")
sick(
    "mixes_tensors_silently",
    PRODUCT_OF_ROWS,
    MixesTensorsSilently,
    r"gradient of `weight` where only `weight` is a plain tensor on rank 0 differs",
)
sick("refuses_the_rows", SCALE_OF_SHARDS, RefusesTheRows, r"the call with `x` shard\(0\) raised NotImplementedError")
