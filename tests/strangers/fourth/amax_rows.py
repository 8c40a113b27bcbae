import torch


class AMax(torch.autograd.Function):
    """Maximum over one dim; where several entries attain it they share the gradient equally."""

    @staticmethod
    def forward(ctx, x, dim):
        out = x.amax(dim)
        ctx.save_for_backward(x, out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        hit = (x == out.unsqueeze(ctx.dim)).to(grad.dtype)
        return grad.unsqueeze(ctx.dim) * hit, None


def amax(x, dim):
    return AMax.apply(x, dim)


def primal(x, dim):
    return torch.amax(x, dim)


surrogate = primal
FUNCTION = amax
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_x(0, 3, 5), 1),
    lambda: (_x(1, 4, 6).round(), 1),
    lambda: (torch.zeros(2, 3, dtype=torch.float64), 0),
]
LIMITS = ("vmap", "jvp")
DEFECT = "where the maximum is attained more than once every entry gets the whole gradient"
KEYWORDS = ("tie", "ties", "equal", "gradient")
