import math

import torch


class LogMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *logps):
        out = torch.logsumexp(torch.stack(logps), dim=0) - math.log(len(logps))
        ctx.save_for_backward(out, *logps)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, *logps = ctx.saved_tensors
        return tuple(grad * torch.exp(p - out) / len(logps) for p in logps)


def log_mix(*logps):
    """Log density of the even mixture of several experts, one tensor each."""
    return LogMix.apply(*logps)


function = log_mix
wrt = ("logps",)


def calls():
    g = torch.Generator().manual_seed(17)
    a, b, c = torch.randn(3, 4, 3, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((a, b, c), {}), ((c,), {})]


def primal(*logps):
    return torch.logsumexp(torch.stack(logps), dim=0) - math.log(len(logps))


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
