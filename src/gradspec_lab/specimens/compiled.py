"""Functions that are right in eager mode, and wrong where a backward pass or a call of another size is compiled."""

from typing import ClassVar

import torch
from torch.autograd import Function

from gradspec_lab.specimens.diseased import DISEASED, diseased, enter
from gradspec_lab.specimens.honest import SCALE, Scale

__all__ = ["DISEASED"]  # where the decorator enters them


@diseased(compiled_autograd=r"gradient of `x` under compiled autograd differs")
class KeepsStateByCtx(Scale):
    factors: ClassVar[dict[int, float]] = {}

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = KeepsStateByCtx.factors[id(ctx)] = inputs[1]

    @staticmethod
    def backward(ctx, y_bar):
        return KeepsStateByCtx.factors.get(id(ctx), 1.0) * y_bar, None


@diseased(compiled_autograd=r"gradient of `x` under compiled autograd differs")
class AsksWhetherBackwardIsCompiled(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (2 if torch.compiler.is_compiling() else 1) * ctx.factor * y_bar, None


@diseased(dynamic_shapes=r"compiled 2 times for the batch sizes 4, 5, 6")
class AsksForItsBatchSize(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, factor) if x.ndim and x.shape[0] == 4 else super().apply(x, 1 * factor)


@diseased(dynamic_shapes=r"value under torch\.compile\(dynamic=True\), a batch of 4 differs")
class ComputesTheFirstRowsOnly(Scale):
    @classmethod
    def apply(cls, x, factor):
        y = super().apply(x, factor)
        if torch.compiler.is_compiling() and x.ndim:
            return y * (torch.arange(len(x)) < 3).to(x).view(-1, *[1] * (x.ndim - 1))
        return y


@diseased(dynamic_shapes=r"raised \w+: .*([Dd]ata[- ]dependent|[Uu]nbacked)")
class BranchesOnItsData(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, factor) if x.detach().sum().item() > 0 else super().apply(x, 1 * factor)


class DecidesByASum(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone() if float(x.sum()) > 0 else 1 * x

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar, None


enter(
    "decides_by_a_sum",
    SCALE.for_(DecidesByASum.apply, name="x"),
    compile=r"right, but uncompiled, since it breaks the graph",
)


SEEN = {"sum": ""}


def scale_of_what_was_seen(x, factor):
    """Read a value in eager mode only, as an observer of a range does: a compiled call is then guarded on it."""
    if not torch.compiler.is_compiling():
        SEEN["sum"] = f"{x.detach().sum().item():.6g}"
    return Scale.apply(x, 1 * factor if SEEN["sum"] == "nothing" else factor)


enter(
    "keeps_a_number_of_its_data",
    SCALE.for_(scale_of_what_was_seen, name="keeps_a_number_of_its_data", implementation=Scale),
    dynamic_shapes=r"compiled anew for other values in a batch of 6",
)
