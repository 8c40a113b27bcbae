import math

import torch
from torch.autograd.function import once_differentiable


def _iterate(cost, eps, iters):
    n, m = cost.shape[-2:]
    logk = -cost / eps
    g = cost.new_zeros(cost.shape[:-2] + (1, m))
    for _ in range(iters):
        f = -math.log(n) - torch.logsumexp(logk + g, -1, keepdim=True)
        g = -math.log(m) - torch.logsumexp(logk + f, -2, keepdim=True)
    return torch.exp(logk + f + g)


class SinkhornPlan(torch.autograd.Function):
    """Entropic transport plan between uniform marginals; the iterations are run again in backward
    instead of being kept, so that memory does not grow with their number."""

    @staticmethod
    def forward(ctx, cost, eps, iters):
        ctx.save_for_backward(cost)
        ctx.eps, ctx.iters = eps, iters
        return _iterate(cost, eps, iters)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_plan):
        (cost,) = ctx.saved_tensors
        with torch.enable_grad():
            cost = cost.detach().requires_grad_()
            plan = _iterate(cost, ctx.eps, ctx.iters)
        (grad_cost,) = torch.autograd.grad(plan, cost, grad_plan)
        return grad_cost, None, None


def sinkhorn_plan(cost, eps=0.1, iters=20):
    return SinkhornPlan.apply(cost, eps, iters)


function = sinkhorn_plan
wrt = ("cost",)


def calls():
    g = torch.Generator().manual_seed(106)
    c = torch.rand(4, 5, generator=g, dtype=torch.float64)
    d = torch.rand(2, 3, 3, generator=g, dtype=torch.float64)
    return [((c,), {}), ((d,), {"eps": 0.5, "iters": 7})]


def primal(cost, eps=0.1, iters=20):
    n, m = cost.shape[-2:]
    v = torch.zeros_like(cost[..., :1, :])
    for _ in range(iters):
        u = -math.log(n) - (v - cost / eps).logsumexp(-1, keepdim=True)
        v = -math.log(m) - (u - cost / eps).logsumexp(-2, keepdim=True)
    return (u + v - cost / eps).exp()


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
