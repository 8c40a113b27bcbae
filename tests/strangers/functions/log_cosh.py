import math

import torch


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, err):
        ctx.save_for_backward(err)
        a = err.float().abs()
        out = a + torch.log1p(torch.exp(-2 * a)) - math.log(2)
        return out.to(err.dtype)

    @staticmethod
    def backward(ctx, grad):
        err, = ctx.saved_tensors
        return grad * torch.tanh(err)


def log_cosh(prediction, target):
    return LogCosh.apply(prediction - target)


function = log_cosh
wrt = ("prediction", "target")


def calls():
    g = torch.Generator().manual_seed(45)
    p, t = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    return [((p, t), {}), ((p[0], 5 * t[0]), {})]


def primal(prediction, target):
    a = (prediction - target).abs()
    return a + torch.log1p(torch.exp(-2 * a)) - math.log(2)


def show():
    (p, t), _ = calls()[0]
    error = (function(p, t) - primal(p, t)).abs().max().item()
    return 1e-10 < error < 1e-5


TRUTH = {
    "sound": False,
    "defect": "forward computes in float32 whatever the input is, so float64 values are right to 7 digits only.",
    "rank": "wrong",
    "names": ["precision", "float32", "single precision", "digits", "rounded", "accuracy", "dtype"],
    "first_law": "the values to the precision of the dtype",
}
