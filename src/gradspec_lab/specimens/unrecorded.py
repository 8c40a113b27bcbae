"""Functions that are right in training, and wrong without a graph or where some of forward runs a second time."""

import torch

from gradspec_lab.specimens.diseased import DISEASED, diseased
from gradspec_lab.specimens.honest import Scale

__all__ = ["DISEASED"]  # where the decorator enters them


@diseased(inference=r"value of arguments that require no gradient differs")
class ReadsRequiresGrad(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, factor) if x.requires_grad else 2 * x


@diseased(inference=r"value under torch\.no_grad\(\) differs")
class AsksForGradMode(Scale):
    @classmethod
    def apply(cls, x, factor):
        return super().apply(x, factor) if torch.is_grad_enabled() else 2 * x


@diseased(inference=r"a call of what torch\.inference_mode\(\) made raised RuntimeError")
class ReadsAVersion(Scale):
    @staticmethod
    def forward(x, factor):
        return x.clone() if x._version >= 0 else x


@diseased(selective_checkpoint=r"gradient of `x` under selective checkpointing that saves all results differs")
class FillsATableInItsFirstCall(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        if not hasattr(x, "table"):
            x.table = torch.full_like(x, 0.0)
        ctx.save_for_backward(torch.full_like(x, ctx.factor))

    @staticmethod
    def backward(ctx, y_bar):
        return ctx.saved_tensors[0] * y_bar, None
