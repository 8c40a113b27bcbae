"""Channel dropout of float32 feature maps from a seed, the mask redrawn in backward."""

import torch


class FeatureDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        if x.dtype != torch.float32:
            raise TypeError("feature dropout: float32 only")
        gen = torch.Generator().manual_seed(seed)
        keep = torch.rand(x.shape[:2], generator=gen) >= p
        ctx.p, ctx.seed = p, seed
        return x * (keep / (1 - p)).view(*keep.shape, *[1] * (x.dim() - 2))

    @staticmethod
    def backward(ctx, grad):
        torch.manual_seed(ctx.seed)
        keep = torch.rand(grad.shape[:2]) >= ctx.p
        return grad * (keep / (1 - ctx.p)).view(*keep.shape, *[1] * (grad.dim() - 2)), None, None


def feature_dropout(x, p, seed):
    return FeatureDropout.apply(x, p, seed)


def primal(x, p, seed):
    gen = torch.Generator().manual_seed(seed)
    keep = (torch.rand(x.shape[:2], generator=gen) >= p).float()
    return torch.einsum("bc...,bc->bc...", x, keep / (1 - p))


surrogate = primal
FUNCTION = feature_dropout
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


CALLS = [lambda: (_x(0, 2, 4, 3), 0.5, 3), lambda: (_x(1, 1, 6), 0.25, 8), lambda: (_x(2, 3, 2, 2, 2), 0.4, 3)]
LIMITS = ("vmap", "jvp", "float64", "half")
DEFECT = "backward reseeds the global generator to redraw the mask"
KEYWORDS = ("seed", "rng", "random", "generator", "global")
