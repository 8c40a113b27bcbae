"""Integrate and fire, whose gradient is that of the clipped mean current."""

import torch
from spikingjelly.activation_based.neuron.dsr import DSRIFNode

from gradspec import FunctionSpec


def fired(current, steps, threshold, alpha, scaling):
    v, spikes = 0, []
    for drive in current:
        v = v + drive
        spikes.append(((v >= alpha * threshold) * threshold).float())
        v = v - spikes[-1]
    return torch.stack(spikes)


def rate(current, steps, threshold, alpha, scaling):
    return torch.minimum(current.mean(0).clamp(min=0), threshold).expand_as(current)


def cases(make):
    yield 2 * make(4, 6), 4, make(low=0.5, high=0.9), 0.5, 1.0
    yield make(3, 2, 2) + 1, 3, make(low=0.5, high=0.9), 0.3, 1.0


RIGHT = FunctionSpec(DSRIFNode.DSRIFFunction.apply, fired, surrogate=rate, cases=cases)


class Summed(DSRIFNode.DSRIFFunction):
    @staticmethod
    def backward(ctx, s_bar):
        of_current, *rest = DSRIFNode.DSRIFFunction.backward(ctx, s_bar)
        return of_current * ctx.T, *rest


WRONG = RIGHT.for_(Summed.apply)
