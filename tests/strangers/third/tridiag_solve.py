import torch
from torch.autograd import Function


class TridiagSolve(Function):
    """Thomas algorithm, as in implicit finite differences of option prices. lower and upper have n - 1 entries."""

    @staticmethod
    def forward(lower, diag, upper, rhs):
        n = diag.shape[0]
        c, d = [], []
        beta = diag[0]
        d.append(rhs[0] / beta)
        for i in range(1, n):
            c.append(upper[i - 1] / beta)
            beta = diag[i] - lower[i - 1] * c[-1]
            d.append((rhs[i] - lower[i - 1] * d[-1]) / beta)
        u = [d[-1]]
        for i in range(n - 2, -1, -1):
            u.append(d[i] - c[i] * u[-1])
        return torch.stack(u[::-1])

    @staticmethod
    def setup_context(ctx, inputs, output):
        lower, diag, upper, _ = inputs
        ctx.save_for_backward(lower, diag, upper, output)

    @staticmethod
    def backward(ctx, grad):
        lower, diag, upper, u = ctx.saved_tensors
        lam = TridiagSolve.apply(upper, diag, lower, grad)
        return -lam[1:] * u[:-1], -lam * u, -lam[:-1] * u[1:], lam


def tridiag_solve(lower, diag, upper, rhs):
    return TridiagSolve.apply(lower, diag, upper, rhs)


function = tridiag_solve
wrt = ("lower", "diag", "upper", "rhs")


def calls():
    g = torch.Generator().manual_seed(353)
    low, up = torch.randn(2, 4, generator=g, dtype=torch.float64)
    diag = 4 + torch.rand(5, generator=g, dtype=torch.float64)
    rhs = torch.randn(5, generator=g, dtype=torch.float64)
    return [((low, diag, up, rhs), {}), ((low[:0], diag[:1], up[:0], rhs[:1]), {})]


def primal(lower, diag, upper, rhs):
    return torch.linalg.solve(torch.diag(diag) + torch.diag(lower, -1) + torch.diag(upper, 1), rhs)


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
