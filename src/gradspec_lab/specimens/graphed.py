"""Functions that Python makes wrong, or impossible to capture, in a CUDA graph."""

from gradspec_lab.specimens.diseased import DISEASED, diseased, diseased_as
from gradspec_lab.specimens.honest import Scale
from gradspec_lab.specimens.stateful import TALLY, Tally, at_the_end, move

__all__ = ["DISEASED"]  # where the decorator enters them


@diseased(cuda_graph=r"capture in a CUDA graph raised")
class ReadsAValueInEachCall(Scale):
    @staticmethod
    def forward(x, factor):
        return x + 0 * x.sum().item()


@diseased(cuda_graph=r"value replayed on other values differs")
class KeepsAValueOnItsArgument(Scale):
    @staticmethod
    def forward(x, factor):
        if not hasattr(x, "total"):
            x.total = x.sum().item()
        return x + (x.sum() - x.total)


@diseased(cuda_graph=r"gradient replayed on other values of `x` differs")
class KeepsAFactorOnItsArgument(Scale):
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        if not hasattr(x, "total"):
            x.total = x.sum().item()
        ctx.drift = x.sum() - x.total

    @staticmethod
    def backward(ctx, y_bar):
        return (ctx.factor + ctx.drift) * y_bar, None


@diseased_as(TALLY, cuda_graph=r"`total` moves otherwise in a replay than in a plain call")
class MovesATotalOnce(Tally):
    @staticmethod
    def backward(ctx, y_bar):
        x, held = ctx.saved_tensors
        total = ctx.total()
        if not hasattr(total, "has_moved"):
            total.has_moved = True
            at_the_end(lambda: move(ctx, x))
        return y_bar * held, None
