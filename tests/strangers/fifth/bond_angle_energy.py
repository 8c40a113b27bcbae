"""Harmonic energy of bond angles in cos(theta), forces by hand, differentiable once more."""

import torch


class AngleEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, triples, stiff, cos0):
        i, j, k = triples.unbind(1)
        a, b = pos[i] - pos[j], pos[k] - pos[j]
        cos = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
        ctx.save_for_backward(pos, triples)
        ctx.stiff, ctx.cos0 = stiff, cos0
        return 0.5 * stiff * (cos - cos0).square().sum()

    @staticmethod
    def backward(ctx, grad):
        pos, triples = ctx.saved_tensors
        i, j, k = triples.unbind(1)
        a, b = pos[i] - pos[j], pos[k] - pos[j]
        na, nb = a.norm(dim=1, keepdim=True), b.norm(dim=1, keepdim=True)
        ua, ub = a / na, b / nb
        cos = (ua * ub).sum(1, keepdim=True)
        pull = grad * ctx.stiff * (cos - ctx.cos0)
        fa = pull * (ub - cos * ua) / na
        fb = pull * (ua - cos * ub) / nb
        out = torch.zeros_like(pos).index_add(0, i, fa).index_add(0, k, fb)
        return out.index_add(0, j, -fa - fb), None, None, None


def angle_energy(pos, triples, stiff, cos0):
    return AngleEnergy.apply(pos, triples, stiff, cos0)


def primal(pos, triples, stiff, cos0):
    a, b = pos[triples[:, 0]] - pos[triples[:, 1]], pos[triples[:, 2]] - pos[triples[:, 1]]
    cos = torch.nn.functional.cosine_similarity(a, b, dim=1, eps=0.0)
    return 0.5 * stiff * (cos - cos0).square().sum()


surrogate = primal
FUNCTION = angle_energy
WRT = ("pos",)


def _args(seed, n, triples, stiff, cos0):
    gen = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(n, 3, generator=gen, dtype=torch.float64), torch.tensor(triples), stiff, cos0


CALLS = [
    lambda: _args(0, 3, [[0, 1, 2]], 1.5, -0.3),
    lambda: _args(1, 5, [[0, 1, 2], [1, 2, 3], [4, 2, 3]], 0.7, 0.5),
]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
