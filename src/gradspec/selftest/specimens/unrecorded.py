"""Functions that are right where torch records a graph, and wrong or missing where it does not."""

import torch

from gradspec.selftest.specimens.diseased import DISEASED, diseased
from gradspec.selftest.specimens.honest import Scale

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
