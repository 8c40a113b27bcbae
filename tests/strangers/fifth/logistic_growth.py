"""Logistic growth curve K / (1 + exp(-r (t - m))) with the slope taken from the output."""

import torch


class LogisticGrowth(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, rate, mid, cap):
        y = cap * torch.sigmoid(rate * (t - mid))
        ctx.save_for_backward(t, rate, mid)
        ctx.y, ctx.cap = y, cap
        return y

    @staticmethod
    def backward(ctx, grad):
        t, rate, mid = ctx.saved_tensors
        g = grad * ctx.y * (1 - ctx.y / ctx.cap)
        g_t = g * rate
        return g_t, (g * (t - mid)).sum(), -g_t.sum(), None


def growth(t, rate, mid, cap):
    y = LogisticGrowth.apply(t, rate, mid, cap)
    return y.clamp_(max=cap)


def primal(t, rate, mid, cap):
    return cap / (1 + torch.exp(-rate * (t - mid)))


surrogate = primal
FUNCTION = growth
WRT = ("t", "rate", "mid")


def _args(seed, shape, cap):
    gen = torch.Generator().manual_seed(seed)
    t = torch.randn(shape, generator=gen, dtype=torch.float64)
    rate, mid = torch.rand(2, generator=gen, dtype=torch.float64).unbind()
    return t, 0.5 + rate, mid.clone(), cap


CALLS = [lambda: _args(0, (5,), 1.0), lambda: _args(1, (2, 3), 4.0), lambda: _args(2, (1,), 0.5)]
LIMITS = ("vmap", "jvp")
DEFECT = "the output is kept as an attribute of ctx, a cycle through its own graph that is never freed"
KEYWORDS = ("memory", "leak", "cycle", "output", "released", "freed")
