"""The distribution function of a normal variable."""

import math

import torch
from diffsort.functional import NormalCDF

from gradspec import FunctionSpec

RIGHT = FunctionSpec(
    NormalCDF.apply,
    lambda x, sigma: torch.special.ndtr(x / sigma),
    cases=lambda make: [(make(2, 3), 0.5), (make(4), 2.0)],
)


class OfTheVariance(NormalCDF):
    @staticmethod
    def backward(ctx, y_bar):
        x, sigma = ctx.saved_tensors
        return y_bar / sigma / math.sqrt(2 * math.pi) * torch.exp(-0.5 * x**2 / sigma), None


WRONG = RIGHT.for_(OfTheVariance.apply)
