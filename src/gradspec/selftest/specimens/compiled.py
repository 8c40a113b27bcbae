"""Functions that are right in eager mode, and wrong where a backward pass or a call of another size is compiled."""

from typing import ClassVar

import torch

from gradspec.selftest.specimens.diseased import DISEASED, diseased
from gradspec.selftest.specimens.honest import Scale

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
