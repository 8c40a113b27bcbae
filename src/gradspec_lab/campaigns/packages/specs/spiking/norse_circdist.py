"""A spike drawn with a probability that rises with the potential."""

import torch
from norse.torch.functional.threshold import CircDist

from gradspec import FunctionSpec


def drawn(x, width):
    return torch.bernoulli(0.5 + 0.5 * x / (x**2 + width**2).sqrt())


RIGHT = FunctionSpec(
    CircDist.apply,
    drawn,
    surrogate=lambda x, width: width * x / (x**2 + width**2).sqrt(),
    cases=lambda make: [(make(8), 0.5), (make(2, 3), 2.0)],
)


class LostFactor(CircDist):
    @staticmethod
    def backward(ctx, s_bar):
        return CircDist.backward(ctx, s_bar)[0] / ctx.alpha, None


WRONG = RIGHT.for_(LostFactor.apply)
