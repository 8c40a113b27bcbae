import torch


class LogDet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A):
        S = 0.5 * (A + A.mT)
        L = torch.linalg.cholesky(S)
        ctx.save_for_backward(A)
        return 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx, g):
        (A,) = ctx.saved_tensors
        S = 0.5 * (A + A.mT)
        return g[..., None, None] * torch.linalg.inv(S)


def logdet_spd(A):
    return LogDet.apply(A)


function = logdet_spd
wrt = ("A",)


def calls():
    g = torch.Generator().manual_seed(9)
    m = torch.randn(4, 4, generator=g, dtype=torch.float64)
    b = torch.randn(3, 3, 3, generator=g, dtype=torch.float64)
    return [
        ((m @ m.T + 2 * torch.eye(4, dtype=m.dtype),), {}),
        ((b @ b.mT + 2 * torch.eye(3, dtype=m.dtype),), {}),
    ]


def primal(A):
    return torch.logdet(0.5 * (A + A.mT))


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
