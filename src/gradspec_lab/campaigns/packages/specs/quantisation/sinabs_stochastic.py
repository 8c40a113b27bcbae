"""Rounding up with the probability of the fraction, passed straight through."""

import torch

from gradspec import FunctionSpec
from gradspec_lab.campaigns.packages.absent import absent

absent("pylab", "matplotlib")
from sinabs.activation import StochasticRounding


def rounded(x):
    return x.floor() + (torch.rand_like(x) < x - x.floor()).to(x.dtype)


RIGHT = FunctionSpec(
    StochasticRounding.apply, rounded, surrogate=lambda x: x, cases=lambda make: [3 * make(8), make(2, 3)]
)


class TheOtherWay(StochasticRounding):
    @staticmethod
    def forward(ctx, x):
        return x.floor() + (torch.rand_like(x) > x - x.floor()).to(x.dtype)


WRONG = RIGHT.for_(TheOtherWay.apply)
