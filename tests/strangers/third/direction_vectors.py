import torch


class Directions(torch.autograd.Function):
    """x / sqrt(|x|^2 + eps) along the last axis."""

    @staticmethod
    def forward(ctx, x, eps):
        ctx.eps = eps
        y = x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inv = 1.0 / (x.square().sum(-1, keepdim=True).sqrt() + ctx.eps)
        u = x * inv
        return inv * (g - u * (u * g).sum(-1, keepdim=True)), None


def direction_vectors(src, dst, eps=1e-2):
    """Regularised unit vectors from src to dst."""
    return Directions.apply(dst - src, eps)


function = direction_vectors
wrt = ("src", "dst")


def calls():
    g = torch.Generator().manual_seed(327)
    a, b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((a, a + 0.05 * b), {"eps": 1e-3})]


def primal(src, dst, eps=1e-2):
    d = dst - src
    return d / ((d * d).sum(-1, keepdim=True) + eps).sqrt()


def show():
    off = []
    for (a, b), k in calls():
        b.requires_grad_()
        v = torch.arange(12, dtype=b.dtype).reshape(4, 3)
        (mine,) = torch.autograd.grad(function(a, b, **k), b, v)
        (true,) = torch.autograd.grad(primal(a, b, **k), b, v)
        off.append(((mine - true).abs().max() / true.abs().max()).item())
    return off[0] > 1e-5 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "eps stands under the root in forward and outside of it in backward: slightly wrong for long vectors, "
    "badly for short ones.",
    "rank": "wrong",
    "names": ["eps", "epsilon", "small", "norm", "gradient of src", "gradient of dst", "gradient"],
    "first_law": "the gradient of src",
}
