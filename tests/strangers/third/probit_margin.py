import math

import torch


class NormalCDF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * torch.erfc(-x / math.sqrt(2))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        pdf = torch.exp(-0.5 * x.float() ** 2) / math.sqrt(2 * math.pi)
        return (grad * pdf).type_as(x)


def probit_margin(score, threshold, slope=1.0):
    """Probability that a score with unit Gaussian noise passes each threshold. (N,), (K,) -> (N, K)"""
    return NormalCDF.apply(slope * (score[:, None] - threshold[None, :]))


function = probit_margin
wrt = ("score", "threshold")


def calls():
    g = torch.Generator().manual_seed(315)
    s = torch.randn(4, generator=g, dtype=torch.float64)
    t = torch.randn(3, generator=g, dtype=torch.float64)
    return [((s, t), {}), ((s.float(), t.float()), {"slope": 2.0})]


def primal(score, threshold, slope=1.0):
    return torch.special.ndtr(slope * (score.unsqueeze(1) - threshold))


def show():
    (s, t), _ = calls()[0]
    s.requires_grad_()
    (mine,) = torch.autograd.grad(function(s, t).sum(), s)
    (true,) = torch.autograd.grad(primal(s, t).sum(), s)
    return mine.dtype == torch.float64 and 1e-9 < (mine - true).abs().max().item() < 1e-5


TRUTH = {
    "sound": False,
    "defect": "The density is computed in float32 for float64 inputs: the gradient has seven right digits of sixteen.",
    "rank": "wrong",
    "names": ["float32", "precision", "rounding", "digits", "dtype", "gradient of score"],
    "first_law": "the gradient in float64",
}
