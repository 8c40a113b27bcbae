"""Elementwise Gaussian negative log-likelihood, parametrised by the log variance."""

import torch
from torch.autograd import Function


class GaussianNLL(Function):
    @staticmethod
    def forward(ctx, mean, log_var, target):
        ctx.save_for_backward(mean, log_var, target)
        return 0.5 * (log_var + (mean - target) ** 2 * torch.exp(-log_var))

    @staticmethod
    def backward(ctx, grad):
        mean, log_var, target = ctx.saved_tensors
        inv = torch.exp(-log_var)
        g_mean = grad * (mean - target) * inv
        g_lv = 0.5 * grad * (1 - (mean - target) ** 2 * inv)
        return g_mean, g_lv, g_mean


def gaussian_nll(mean, log_var, target):
    return GaussianNLL.apply(mean, log_var, target)


def primal(mean, log_var, target):
    return 0.5 * log_var + 0.5 * (target - mean) ** 2 / log_var.exp()


surrogate = primal
FUNCTION = gaussian_nll
WRT = ("mean", "log_var", "target")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=gen, dtype=torch.float64) for _ in range(3))


CALLS = [lambda: _args(0, 4, 2), lambda: _args(1, 5), lambda: _args(2, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "the gradient of target has the wrong sign: it is the gradient of mean again"
KEYWORDS = ("target", "sign")
