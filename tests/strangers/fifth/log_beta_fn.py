"""log B(a, b) with hand-written first and second derivatives."""

import torch


class LogBetaGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        both = torch.digamma(a + b)
        return torch.digamma(a) - both, torch.digamma(b) - both

    @staticmethod
    def backward(ctx, g_a, g_b):
        a, b = ctx.saved_tensors
        both = torch.polygamma(1, a + b)
        return g_a * (torch.polygamma(1, a) - both), g_b * (torch.polygamma(1, b) - both)


class LogBeta(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)

    @staticmethod
    def backward(ctx, grad):
        da, db = LogBetaGrad.apply(*ctx.saved_tensors)
        return grad * da, grad * db


def log_beta(a, b):
    return LogBeta.apply(a, b)


def primal(a, b):
    return torch.lgamma(torch.stack([a, b])).sum(0) - torch.lgamma(a + b)


surrogate = primal
FUNCTION = log_beta
WRT = ("a", "b")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return tuple(0.5 + 3 * torch.rand(shape, generator=gen, dtype=torch.float64) for _ in range(2))


CALLS = [lambda: _args(0, 4), lambda: _args(1, 2, 2), lambda: _args(2, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "the second derivative lacks the cross term between a and b"
KEYWORDS = ("double", "second", "cross", "mixed", "hessian")
