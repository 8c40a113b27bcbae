import torch


class RidgeLogDet(torch.autograd.Function):
    """log |A + lam I| for a Gaussian process with general (positive determinant) kernel"""

    @staticmethod
    def forward(ctx, A, lam):
        torch.set_default_dtype(A.dtype)  # so that eye below fits
        M = A + lam * torch.eye(A.shape[0])
        ctx.save_for_backward(A)
        ctx.lam = lam
        return torch.linalg.slogdet(M)[1]

    @staticmethod
    def backward(ctx, g):
        (A,) = ctx.saved_tensors
        M = A + ctx.lam * torch.eye(A.shape[0], dtype=A.dtype)
        return g * torch.linalg.inv(M).t(), None


def ridge_logdet(A, lam=1e-3):
    return RidgeLogDet.apply(A, lam)


function = ridge_logdet
wrt = ("A",)


def calls():
    g = torch.Generator().manual_seed(48)
    m = torch.randn(4, 4, generator=g, dtype=torch.float64)
    return [((m @ m.t(),), {"lam": 0.5}), ((m + 4 * torch.eye(4, dtype=m.dtype),), {})]


def primal(A, lam=1e-3):
    return torch.linalg.slogdet(A + lam * torch.eye(A.shape[0], dtype=A.dtype))[1]


def show():
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float32)
        (A,), kw = calls()[0]
        function(A, **kw)
        return torch.get_default_dtype() == torch.float64 and torch.zeros(1).dtype == torch.float64
    finally:
        torch.set_default_dtype(before)


TRUTH = {
    "sound": False,
    "defect": "forward sets the global default dtype to that of its input and never sets it back.",
    "rank": "wrong",
    "names": ["default dtype", "global", "set_default_dtype", "state"],
    "first_law": "leaves global settings alone",
}
