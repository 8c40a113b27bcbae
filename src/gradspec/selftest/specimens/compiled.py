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
