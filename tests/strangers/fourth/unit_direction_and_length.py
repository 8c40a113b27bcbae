import torch


class DirectionLength(torch.autograd.Function):
    """x -> (x / max(|x|, eps), |x|) over the last dim."""

    @staticmethod
    def forward(ctx, x, eps):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        ctx.eps = eps
        r = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / r.clamp_min(eps), r

    @staticmethod
    def backward(ctx, gu, gr):
        if gu is None and gr is None:
            return None, None
        (x,) = ctx.saved_tensors
        r = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        gx = torch.zeros_like(x)
        if gu is not None:
            d = r.clamp_min(ctx.eps)
            u = x / d
            radial = (gu * u).sum(-1, keepdim=True) * u
            gx = gx + (gu - torch.where(r > ctx.eps, radial, torch.zeros_like(radial))) / d
        if gr is not None:
            gx = gx + gr * x / r.clamp_min(torch.finfo(x.dtype).tiny)
        return gx, None


def direction_and_length(x, eps):
    return DirectionLength.apply(x, eps)


def primal(x, eps):
    r = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / r.clamp_min(eps), r


surrogate = primal
FUNCTION = direction_and_length
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_x(0, 4, 3), 1e-8),
    lambda: (torch.cat([_x(1, 2, 3), 1e-4 * _x(2, 1, 3)]), 1e-2),
    lambda: (_x(3, 2, 2, 1), 1e-6),
]
LIMITS = ("vmap", "jvp", "half")
DEFECT = ""
KEYWORDS = ()
