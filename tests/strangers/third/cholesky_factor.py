import torch


class CholeskyFactor(torch.autograd.Function):
    """Lower factor of a symmetric positive definite matrix."""

    @staticmethod
    def forward(ctx, a):
        low = torch.linalg.cholesky(a)
        ctx.save_for_backward(low)
        return low

    @staticmethod
    def backward(ctx, grad):
        (low,) = ctx.saved_tensors
        middle = torch.tril(low.mT @ grad)
        left = torch.linalg.solve_triangular(low.mT, middle, upper=True)
        s = torch.linalg.solve_triangular(low, left, upper=False, left=False)
        return 0.5 * (s + s.mT)


def cholesky_factor(x, jitter=1e-1):
    """Factor of the Gram matrix of x (..., n, d) with jitter on the diagonal."""
    gram = x @ x.mT
    return CholeskyFactor.apply(gram + jitter * torch.eye(x.shape[-2], dtype=x.dtype))


function = cholesky_factor
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(334)
    x = torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {"jitter": 1.0})]


def primal(x, jitter=1e-1):
    eye = torch.eye(x.shape[-2], dtype=x.dtype)
    return torch.linalg.cholesky(x @ x.mT + jitter * eye)


def show():
    (x,), _ = calls()[0]
    x.requires_grad_()
    (mine,) = torch.autograd.grad(function(x).sum(), x)
    (true,) = torch.autograd.grad(primal(x).sum(), x)
    return (mine - true).abs().max().item() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "The diagonal of the lower triangle in the middle is not halved.",
    "rank": "wrong",
    "names": ["gradient of x", "diagonal", "half", "halved", "factor", "gradient of a"],
    "first_law": "the gradient of x",
}
