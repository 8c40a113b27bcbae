# Euclidean projection of rows onto {w >= 0, sum w = radius}, after Duchi et al. 2008
import torch


def _project(v, radius):
    u = torch.sort(v, dim=-1, descending=True).values
    k = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype, device=v.device)
    excess = u.cumsum(-1) - radius
    rho = (u * k > excess).sum(-1, keepdim=True)
    tau = excess.gather(-1, rho - 1) / rho.to(v.dtype)
    return (v - tau).clamp(min=0)


class SimplexProjection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, radius):
        w = _project(v, radius)
        ctx.save_for_backward(w)
        return w

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        active = (w > 0).to(grad.dtype)
        mean = (grad * active).sum(-1, keepdim=True) / active.sum(-1, keepdim=True)
        return active * (grad - mean), None


def project_simplex(v, radius):
    return SimplexProjection.apply(v, radius)


def primal(v, radius):
    return _project(v, radius)


surrogate = primal
FUNCTION = project_simplex
WRT = ("v",)


def _v(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_v(0, 4, 6), 1.0), lambda: (3 * _v(1, 5), 2.5), lambda: (_v(2, 2, 2, 1), 1.0)]
LIMITS = ("vmap", "jvp", "half")
DEFECT = ""
KEYWORDS = ()
