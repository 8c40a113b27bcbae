"""Functions that reach beyond their call: into the process, into memory that nobody wrote, or under the cotangent."""

import torch

from gradspec_lab.specimens.diseased import DISEASED, diseased
from gradspec_lab.specimens.honest import Scale

__all__ = ["DISEASED"]  # where the decorator enters them


@diseased(global_state=r"forward: the default dtype is torch\.float64, was torch\.float32")
class ChangesTheDefaultDtype(Scale):
    @staticmethod
    def forward(x, factor):
        torch.set_default_dtype(torch.float64)
        return x.clone()


@diseased(global_state=r"it prints 'backward of Scale'")
class Prints(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        print("backward of Scale")
        return ctx.factor * y_bar, None


@diseased(global_state=r"backward: torch\.nn\.functional\.relu has been replaced")
class PatchesTorch(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        torch.nn.functional.relu = torch.sigmoid
        return ctx.factor * y_bar, None


def _unwritten(like):
    """Return zeros, or NaN if new memory is filled: what it holds else, other laws would see on some days."""
    memory = like.new_empty(like.shape, dtype=torch.int64)
    return torch.where(memory == torch.iinfo(torch.int64).max, torch.nan, 0.0).to(like.dtype)


@diseased(uninitialized_memory=r"value is memory that nobody wrote in (\d+) of \1 elements")
class ReadsUnwrittenMemory(Scale):
    @staticmethod
    def forward(x, factor):
        return x + _unwritten(x)


@diseased(uninitialized_memory=r"gradient of `x` is memory that nobody wrote in (\d+) of \1 elements")
class ReadsUnwrittenMemoryInBackward(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar + _unwritten(y_bar), None


@diseased(batched_cotangent=r"backward reads `\.data` of a batched cotangent, which has no memory")
class ReachesUnderTheCotangent(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return ctx.factor * y_bar.data, None


@diseased(batched_cotangent=r"gradient 0 of a batch of cotangents of `x` differs")
class ForgetsItsFactorInABatch(Scale):
    @staticmethod
    def backward(ctx, y_bar):
        return (y_bar * 1 if torch._C._functorch.is_legacy_batchedtensor(y_bar) else ctx.factor * y_bar), None


@diseased(forward_over_reverse=r"gradient under jvp of `x` differs")
class AnotherGradientBesideATangent(Scale):
    @classmethod
    def apply(cls, x, factor):
        doubled = torch._C._functorch.is_gradtrackingtensor(x) and torch._C._functorch.maybe_get_level(x) > 1
        return super().apply(x, factor * (2 if doubled else 1))
