import torch


def _half_tril(m):
    return m.tril() - 0.5 * torch.diag_embed(m.diagonal(dim1=-2, dim2=-1))


class Whiten(torch.autograd.Function):
    """Rows of x times the inverse transposed Cholesky factor of cov."""

    @staticmethod
    def forward(ctx, x, cov):
        ctx.save_for_backward(x, cov)
        low = torch.linalg.cholesky(cov)
        return torch.linalg.solve_triangular(low, x.mT, upper=False).mT

    @staticmethod
    def backward(ctx, grad):
        x, cov = ctx.saved_tensors
        low = torch.linalg.cholesky(cov)
        z = torch.linalg.solve_triangular(low, x.mT, upper=False)
        g_x = torch.linalg.solve_triangular(low.mT, grad.mT, upper=True)
        middle = _half_tril(low.mT @ (-(g_x @ z.mT)).tril())
        left = torch.linalg.solve_triangular(low.mT, middle, upper=True)
        s = torch.linalg.solve_triangular(low, left, upper=False, left=False)
        return g_x.mT, 0.5 * (s + s.mT)


def mahalanobis_whiten(x, cov):
    return Whiten.apply(x, 0.5 * (cov + cov.mT))


function = mahalanobis_whiten
wrt = ("x", "cov")


def calls():
    g = torch.Generator().manual_seed(363)
    x = torch.randn(5, 3, generator=g, dtype=torch.float64)
    a = torch.randn(3, 3, generator=g, dtype=torch.float64)
    cov = a @ a.T + torch.eye(3, dtype=x.dtype)
    return [((x, cov), {}), ((x[:1], 4 * torch.eye(3, dtype=x.dtype)), {})]


def primal(x, cov):
    low = torch.linalg.cholesky(0.5 * (cov + cov.mT))
    return x @ torch.linalg.inv(low).mT


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
