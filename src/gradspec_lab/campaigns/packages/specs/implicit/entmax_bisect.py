"""A sparse softmax of a trained power, whose threshold is found by bisection."""

import torch
from entmax.root_finding import EntmaxBisectFunction

from gradspec import Accuracy, FunctionSpec


def entmax(x, power):
    def at(tau, less=0):
        return ((power - 1) * x - tau).clamp(min=0) ** (1 / (power - 1) - less)

    high = ((power - 1) * x).max(-1, keepdim=True).values.detach()
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        above = at(middle).detach().sum(-1, keepdim=True) >= 1
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    newton = (at(low).sum(-1, keepdim=True) - 1) * (power - 1) / at(low, 1).sum(-1, keepdim=True)
    return at(low + newton)


def cases(make):
    yield make(2, 4), make(2, 1, low=1.3, high=1.8)
    yield 2 * make(3, 5), make(3, 1, low=1.3, high=1.8)


RIGHT = FunctionSpec(EntmaxBisectFunction.apply, entmax, cases=cases, accuracy=Accuracy(rtol=1e-9))


class Uncentred(EntmaxBisectFunction):
    @classmethod
    def backward(cls, ctx, p_bar):
        (p,) = ctx.saved_tensors
        _, of_power, *rest = super().backward(ctx, p_bar)
        return p_bar * p ** (2 - ctx.alpha), of_power, *rest


WRONG = RIGHT.for_(Uncentred.apply)
