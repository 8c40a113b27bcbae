import torch


def _others(x, dim):
    return [d for d in range(x.dim()) if d != dim]


class ContrastNorm(torch.autograd.Function):
    """Divide every slice along `dim` by its own root mean square."""

    @staticmethod
    def forward(ctx, x, dim, eps):
        ctx.save_for_backward(x)
        ctx.dim, ctx.eps = dim, eps
        return x * (x.square().mean(_others(x, dim), keepdim=True) + eps).rsqrt()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        dims = _others(x, ctx.dim)
        inv = (x.square().mean(dims, keepdim=True) + ctx.eps).rsqrt()
        return grad * inv - x * inv**3 * (grad * x).mean(dims, keepdim=True), None, None


def contrast_norm(x, dim=1, eps=1e-5):
    return ContrastNorm.apply(x, dim, eps)


function = contrast_norm
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(144)
    x = torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x,), {"dim": 0}), ((x,), {"dim": -1, "eps": 1e-3})]


def primal(x, dim=1, eps=1e-5):
    flat = x.movedim(dim, 0).flatten(1)
    out = flat / (flat.pow(2).mean(1, keepdim=True) + eps).sqrt()
    return out.reshape(x.movedim(dim, 0).shape).movedim(0, dim)


def show():
    (x,), _ = calls()[0]
    return torch.allclose(function(x, 2), primal(x, 2)) and not torch.allclose(function(x, -1), primal(x, -1))


TRUTH = {
    "sound": False,
    "defect": "A negative dim is not wrapped: with dim=-1 the whole tensor is normalised by one number.",
    "rank": "wrong",
    "names": ["negative", "axis", "dim=-1", "value of the output", "dim"],
    "first_law": "the values for dim=-1",
}
