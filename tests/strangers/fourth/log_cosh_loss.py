import math

import torch

_RESIDUALS = []  # for the plot in the notebook


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target):
        diff = pred - target
        ctx.save_for_backward(pred, target)
        _RESIDUALS.append((pred, diff))
        return (diff.abs() + torch.nn.functional.softplus(-2 * diff.abs(), threshold=800) - math.log(2)).sum()

    @staticmethod
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        g = grad * torch.tanh(pred - target)
        return g, -g


def log_cosh(pred, target):
    return LogCosh.apply(pred, target)


def primal(pred, target):
    d = pred - target
    return (torch.logaddexp(d, -d) - math.log(2)).sum()


surrogate = primal
FUNCTION = log_cosh
WRT = ("pred", "target")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=gen, dtype=torch.float64) for _ in range(2))


CALLS = [lambda: _args(0, 4, 3), lambda: _args(1, 6), lambda: _args(2, 1)]
LIMITS = ("vmap", "jvp", "compile", "half")
DEFECT = "every call appends its tensors to a module-level list and so keeps them alive for ever"
KEYWORDS = ("leak", "memory", "alive", "reference")
