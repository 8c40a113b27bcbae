"""Isotonic regression by pool-adjacent-violators in numpy; backward averages inside each pool."""

import numpy as np
import torch
from torch.autograd.function import once_differentiable


def _pools(y):
    sums, counts = [], []
    for v in y:
        sums.append(float(v))
        counts.append(1)
        while len(sums) > 1 and sums[-2] * counts[-1] > sums[-1] * counts[-2]:
            s, c = sums.pop(), counts.pop()
            sums[-1] += s
            counts[-1] += c
    return counts


class Isotonic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        counts = np.array(_pools(y.detach().cpu().double().numpy()))
        label = torch.from_numpy(np.repeat(np.arange(len(counts)), counts))
        ctx.label, ctx.counts = label, torch.from_numpy(counts)
        return Isotonic.average(y, label, ctx.counts)

    @staticmethod
    def average(v, label, counts):
        return (v.new_zeros(len(counts)).index_add(0, label, v) / counts.to(v.dtype))[label]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return Isotonic.average(grad, ctx.label, ctx.counts)


def isotonic(y):
    return Isotonic.apply(y)


def primal(y):
    n = len(y)
    cum = torch.cat([y.new_zeros(1), y.cumsum(0)])
    rows = []
    for i in range(n):
        tops = [torch.stack([(cum[b + 1] - cum[a]) / (b + 1 - a) for b in range(i, n)]).min() for a in range(i + 1)]
        rows.append(torch.stack(tops).max())
    return torch.stack(rows)


surrogate = primal
FUNCTION = isotonic
WRT = ("y",)


def _y(values):
    return torch.tensor(values, dtype=torch.float64)


CALLS = [
    lambda: (_y([1.0, 3.1, 2.2, 4.0, 3.5, 3.3, 6.0]),),
    lambda: (_y([3.0, 2.0, 1.1]),),
    lambda: (_y([0.5, 1.5, 2.7, 9.0]),),
]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = None
KEYWORDS = ()
