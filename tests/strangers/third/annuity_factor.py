import torch


class ExpMoment(torch.autograd.Function):
    """Integral over s in [0, 1] of s^k exp(-u s), without cancellation near u = 0."""

    @staticmethod
    def forward(ctx, u, k):
        ctx.save_for_backward(u)
        ctx.k = k
        small = u.abs() < 2
        us = torch.where(small, u, 0.0)
        series, term = torch.zeros_like(u), torch.ones_like(u)
        for n in range(36):
            series += term / (n + k + 1)
            term = -term * us / (n + 1)
        ul = torch.where(small, 2.0, u)
        large = -torch.expm1(-ul) / ul
        for j in range(1, k + 1):
            large = (j * large - torch.exp(-ul)) / ul
        return torch.where(small, series, large)

    @staticmethod
    def backward(ctx, grad):
        (u,) = ctx.saved_tensors
        return -grad * ExpMoment.apply(u, ctx.k + 1), None


def annuity_factor(rate, years):
    """Present value of one unit a year, paid continuously: (1 - exp(-rate years)) / rate, and years at rate zero."""
    return years * ExpMoment.apply(rate * years, 0)


function = annuity_factor
wrt = ("rate", "years")


def calls():
    r = torch.tensor([0.0, 1e-12, -1e-6, 0.03, -0.02, 0.3], dtype=torch.float64)
    t = torch.tensor([10.0, 30.0, 5.0, 20.0, 7.0, 25.0], dtype=torch.float64)
    return [((r, t), {}), ((r[:, None], t[:2]), {})]


def primal(rate, years):
    n = 40
    k = torch.arange(1, n, dtype=torch.float64)
    off = k / (4 * k * k - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(off, 1) + torch.diag(off, -1))
    s, w = (nodes + 1) / 2, vectors[0] ** 2
    return years * (w * torch.exp(-(rate * years).unsqueeze(-1) * s)).sum(-1)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
