"""Central first difference of a field along the last dim with three kinds of boundary."""

import torch


def _difference(u, boundary):
    if boundary == "periodic":
        right, left = u.roll(-1, -1), u.roll(1, -1)
    else:
        if boundary == "replicate":
            lo, hi = u[..., :1], u[..., -1:]
        else:
            lo = hi = torch.zeros_like(u[..., :1])
        right = torch.cat([u[..., 1:], hi], -1)
        left = torch.cat([lo, u[..., :-1]], -1)
    return (right - left) / 2


class CentralDifference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, boundary):
        ctx.boundary = boundary
        return _difference(u, boundary)

    @staticmethod
    def backward(ctx, grad):
        return -_difference(grad, ctx.boundary), None


def central_difference(u, boundary):
    return CentralDifference.apply(u, boundary)


def primal(u, boundary):
    n = u.shape[-1]
    m = torch.diag(u.new_full((n - 1,), 0.5), 1) - torch.diag(u.new_full((n - 1,), 0.5), -1)
    if boundary == "periodic":
        m[0, -1] -= 0.5
        m[-1, 0] += 0.5
    elif boundary == "replicate":
        m[0, 0] -= 0.5
        m[-1, -1] += 0.5
    return u @ m.t()


surrogate = primal
FUNCTION = central_difference
WRT = ("u",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_x(0, 6), "periodic"),
    lambda: (_x(1, 2, 5), "replicate"),
    lambda: (_x(2, 3, 4), "zero"),
]
LIMITS = ("vmap", "jvp")
DEFECT = "the operator is taken as antisymmetric, which it is not at a replicated boundary"
KEYWORDS = ("boundary", "replicate", "edge", "adjoint", "gradient")
