import torch


class BandDiagonal(torch.autograd.Function):
    """A vector put on the k-th diagonal above the main one, without a Python loop."""

    @staticmethod
    def forward(ctx, v, k):
        n = v.shape[0] + k
        out = v.new_zeros(n, n)
        out.as_strided((v.shape[0],), (n + 1,), k).copy_(v)
        ctx.k = k
        return out

    @staticmethod
    def backward(ctx, grad):
        n = grad.shape[0]
        return grad.as_strided((n - ctx.k,), (n + 1,), ctx.k).clone(), None


def band_diagonal(v, k=1):
    return BandDiagonal.apply(v, k)


function = band_diagonal
wrt = ("v",)


def calls():
    g = torch.Generator().manual_seed(306)
    v = torch.randn(4, generator=g, dtype=torch.float64)
    return [((v,), {}), ((v[:3],), {"k": 2})]


def primal(v, k=1):
    return torch.diag(v, k)


def show():
    (v,), _ = calls()[0]
    v.requires_grad_()
    c = torch.arange(25, dtype=v.dtype).reshape(5, 5)
    off = []
    for w in (c, c.T.contiguous().T):
        (mine,) = torch.autograd.grad(function(v), v, w)
        (true,) = torch.autograd.grad(primal(v), v, w)
        off.append((mine - true).abs().max().item())
    return off[0] == 0 and off[1] > 1


TRUTH = {
    "sound": False,
    "defect": "backward reads the diagonal with as_strided, which takes the incoming gradient to be contiguous: of a "
    "transposed one it reads other numbers, of an expanded one it reads beyond the storage.",
    "rank": "wrong",
    "names": ["contiguous", "stride", "as_strided", "layout", "memory", "transposed", "expanded"],
    "first_law": "a non-contiguous incoming gradient",
}
