import torch
from torch.autograd import Function


class _Coulomb(Function):
    # E = sum_{i<j} q_i q_j / |r_i - r_j|
    @staticmethod
    def forward(ctx, pos, charge):
        diff = pos[:, None, :] - pos[None, :, :]
        dist = diff.pow(2).sum(-1).add(torch.eye(len(pos), dtype=pos.dtype)).sqrt()
        inv = (1.0 / dist) * (1.0 - torch.eye(len(pos), dtype=pos.dtype))
        ctx.save_for_backward(pos, charge)
        return 0.5 * (charge[:, None] * charge[None, :] * inv).sum()

    @staticmethod
    def backward(ctx, g):
        pos, charge = ctx.saved_tensors
        eye = torch.eye(len(pos), dtype=pos.dtype)
        diff = pos[:, None, :] - pos[None, :, :]
        inv = (1.0 - eye) / (diff.pow(2).sum(-1) + eye).sqrt()
        qq = charge[:, None] * charge[None, :]
        force = 0.5 * (qq * inv**3)[..., None] * diff
        return -g * force.sum(1), g * (charge[None, :] * inv).sum(1)


def coulomb_energy(pos, charge):
    return _Coulomb.apply(pos, charge)


function = coulomb_energy
wrt = ("pos", "charge")


def calls():
    g = torch.Generator().manual_seed(301)
    pos = 3 * torch.rand(5, 3, generator=g, dtype=torch.float64)
    q = torch.randn(5, generator=g, dtype=torch.float64)
    return [((pos, q), {}), ((pos[:2], q[:2]), {})]


def primal(pos, charge):
    i, j = torch.triu_indices(len(pos), len(pos), 1)
    return (charge[i] * charge[j] / (pos[i] - pos[j]).norm(dim=-1)).sum()


def show():
    (pos, q), _ = calls()[0]
    pos.requires_grad_()
    (mine,) = torch.autograd.grad(function(pos, q), pos)
    (true,) = torch.autograd.grad(primal(pos, q), pos)
    return torch.allclose(2 * mine, true)


TRUTH = {
    "sound": False,
    "defect": "The factor 1/2 against double counting of pairs is kept in the gradient of the positions, where every "
    "pair counts twice: forces are half of what they should be.",
    "rank": "wrong",
    "names": ["gradient of pos", "factor", "half", "0.5", "twice"],
    "first_law": "the gradient of pos",
}
