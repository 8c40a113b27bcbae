import torch


class SPDSqrt(torch.autograd.Function):
    """Square root S of a symmetric positive definite matrix; S dS + dS S = dA, also where eigenvalues coincide."""

    @staticmethod
    def forward(ctx, a):
        w, q = torch.linalg.eigh(a)
        s = (q * w.sqrt()) @ q.mT
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx, grad):
        (s,) = ctx.saved_tensors
        n = s.shape[-1]
        eye = torch.eye(n, dtype=s.dtype, device=s.device)
        both = torch.kron(s, eye) + torch.kron(eye, s)
        return torch.linalg.solve(both, grad.reshape(-1)).reshape(n, n)


def spd_sqrt(a):
    return SPDSqrt.apply((a + a.mT) / 2)


function = spd_sqrt
wrt = ("a",)


def calls():
    g = torch.Generator().manual_seed(354)
    x = torch.randn(3, 3, generator=g, dtype=torch.float64)
    return [((x @ x.T + torch.eye(3, dtype=x.dtype),), {}), ((torch.tensor([[2.0]], dtype=x.dtype),), {})]


def primal(a):
    w, q = torch.linalg.eigh((a + a.mT) / 2)
    return q @ torch.diag(w**0.5) @ q.mT


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
