"""Poisson negative log-likelihood with sample weights and three reductions."""

import torch


class PoissonNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log_rate, count, weight, reduction):
        loss = weight * (log_rate.exp() - count * log_rate)
        ctx.save_for_backward(log_rate, count, weight)
        ctx.reduction = reduction
        if reduction == "mean":
            return loss.sum() / weight.sum()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, grad):
        log_rate, count, weight = ctx.saved_tensors
        g = grad * weight * (log_rate.exp() - count)
        if ctx.reduction == "mean":
            g = g / weight.numel()
        return g, None, None, None


def poisson_nll(log_rate, count, weight, reduction="mean"):
    return PoissonNLL.apply(log_rate, count, weight, reduction)


def primal(log_rate, count, weight, reduction):
    loss = torch.nn.functional.poisson_nll_loss(log_rate, count, log_input=True, reduction="none") * weight
    if reduction == "none":
        return loss
    return loss.sum() / (weight.sum() if reduction == "mean" else 1)


surrogate = primal
FUNCTION = poisson_nll
WRT = ("log_rate",)


def _args(seed, shape, reduction):
    gen = torch.Generator().manual_seed(seed)
    log_rate = torch.randn(shape, generator=gen, dtype=torch.float64)
    count = torch.randint(5, shape, generator=gen).double()
    return log_rate, count, 0.5 + torch.rand(shape, generator=gen, dtype=torch.float64) * 2, reduction


CALLS = [lambda: _args(0, (4,), "sum"), lambda: _args(1, (2, 3), "mean"), lambda: _args(2, (3,), "none")]
LIMITS = ("vmap", "jvp")
DEFECT = "with reduction mean the gradient is divided by the count, the loss by the sum of the weights"
KEYWORDS = ("mean", "reduction", "weight", "factor", "gradient")
