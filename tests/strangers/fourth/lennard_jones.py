# total Lennard-Jones energy and forces of a small cluster, no cutoff
import torch
from torch.autograd.function import once_differentiable


class LennardJones(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, epsilon, sigma):
        ctx.save_for_backward(pos)
        ctx.epsilon, ctx.sigma = epsilon, sigma
        i, j = torch.triu_indices(len(pos), len(pos), 1, device=pos.device)
        r2 = (pos[i] - pos[j]).square().sum(-1)
        s6 = (sigma**2 / r2) ** 3
        return (4 * epsilon * (s6 * s6 - s6)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (pos,) = ctx.saved_tensors
        i, j = torch.triu_indices(len(pos), len(pos), 1, device=pos.device)
        d = pos[i].float() - pos[j].float()
        r2 = d.square().sum(-1)
        s6 = (ctx.sigma**2 / r2) ** 3
        f = (24 * ctx.epsilon * (s6 - 2 * s6 * s6) / r2)[:, None] * d
        out = d.new_zeros(pos.shape)
        out.index_add_(0, i, f).index_add_(0, j, -f)
        return grad * out.to(pos.dtype), None, None


def lj_energy(pos, epsilon, sigma):
    return LennardJones.apply(pos, epsilon, sigma)


def primal(pos, epsilon, sigma):
    r = torch.nn.functional.pdist(pos)
    return 4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6).sum()


surrogate = primal
FUNCTION = lj_energy
WRT = ("pos",)


def _cluster(seed, n):
    gen = torch.Generator().manual_seed(seed)
    grid = torch.cartesian_prod(*[torch.arange(2, dtype=torch.float64)] * 3)[:n]
    return 1.2 * grid + 0.1 * torch.randn(n, 3, generator=gen, dtype=torch.float64)


CALLS = [lambda: (_cluster(0, 8), 1.0, 1.0), lambda: (_cluster(1, 2), 0.5, 1.1), lambda: (_cluster(2, 5), 2.0, 0.9)]
LIMITS = ("double_backward", "vmap", "jvp", "half")
DEFECT = "backward casts float64 positions to float32, so the forces carry seven digits only"
KEYWORDS = ("float32", "precision", "dtype", "cast")
