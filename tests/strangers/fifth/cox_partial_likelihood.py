"""Negative Cox partial log-likelihood (Breslow) over events, for untied survival times."""

import torch
from torch.autograd.function import once_differentiable


class CoxPartial(torch.autograd.Function):
    @staticmethod
    def forward(ctx, risk, times, events):
        order = torch.argsort(times, descending=True)
        r, e = risk[order], events[order]
        log_set = torch.logcumsumexp(r, 0)
        count = e.sum().clamp(min=1)
        inv = torch.where(e, (-log_set).exp(), torch.zeros_like(r))
        weight = inv.flip(0).cumsum(0).flip(0) * r.exp()
        slope = torch.empty_like(r)
        slope[order] = (weight - e.to(r.dtype)) / count
        ctx.save_for_backward(slope)
        return torch.where(e, log_set - r, torch.zeros_like(r)).sum() / count

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None


def cox_loss(risk, times, events):
    return CoxPartial.apply(risk, times, events)


def primal(risk, times, events):
    in_set = times[None, :] >= times[:, None]
    log_set = risk[None, :].expand(len(risk), -1).masked_fill(~in_set, float("-inf")).logsumexp(1)
    return ((log_set - risk) * events).sum() / max(int(events.sum()), 1)


surrogate = primal
FUNCTION = cox_loss
WRT = ("risk",)


def _args(seed, n, p):
    gen = torch.Generator().manual_seed(seed)
    risk = torch.randn(n, generator=gen, dtype=torch.float64)
    times = torch.rand(n, generator=gen, dtype=torch.float64) * 10
    return risk, times, torch.rand(n, generator=gen) < p


CALLS = [lambda: _args(0, 8, 0.6), lambda: _args(1, 5, 1.1), lambda: _args(2, 4, -1.0)]
LIMITS = ("double_backward", "vmap", "jvp")
DEFECT = None
KEYWORDS = ()
