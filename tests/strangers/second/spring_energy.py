import torch
from torch.autograd.function import once_differentiable


class SpringEnergy(torch.autograd.Function):
    """Potential energy of a mass-spring net: pos (N, D), edges (E, 2), rest lengths (E,)."""

    @staticmethod
    def forward(ctx, pos, edges, rest, stiffness):
        d = pos[edges[:, 0]] - pos[edges[:, 1]]
        length = torch.linalg.vector_norm(d, dim=1)
        ctx.save_for_backward(pos, edges, rest)
        ctx.stiffness = stiffness
        return 0.5 * stiffness * (length - rest).square().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_energy):
        pos, edges, rest = ctx.saved_tensors
        d = pos[edges[:, 0]] - pos[edges[:, 1]]
        length = d.square().sum(1, keepdim=True).sqrt()
        tension = ctx.stiffness * (length - rest.unsqueeze(1))
        pull = grad_energy * tension * d / length
        grad_pos = torch.zeros_like(pos).index_add(0, edges[:, 0], pull).index_add(0, edges[:, 1], -pull)
        return grad_pos, None, None, None


def spring_energy(pos, edges, rest, stiffness=1.0):
    return SpringEnergy.apply(pos, edges, rest, stiffness)


function = spring_energy
wrt = ("pos",)


def calls():
    g = torch.Generator().manual_seed(134)
    pos = torch.randn(5, 3, generator=g, dtype=torch.float64)
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [1, 3]])
    rest = torch.rand(6, generator=g, dtype=torch.float64)
    folded = pos.clone()
    folded[3] = folded[1]
    return [((pos, edges, rest), {}), ((folded, edges, rest), {"stiffness": 2.5})]


def primal(pos, edges, rest, stiffness=1.0):
    length = torch.linalg.vector_norm(pos[edges[:, 0]] - pos[edges[:, 1]], dim=1)
    return 0.5 * stiffness * ((length - rest) ** 2).sum()


def show():
    (pos, edges, rest), _ = calls()[1]
    pos.requires_grad_()
    (mine,) = torch.autograd.grad(function(pos, edges, rest), pos)
    (true,) = torch.autograd.grad(primal(pos, edges, rest), pos)
    return bool(mine[[1, 3]].isnan().all() and true.isfinite().all())


TRUTH = {
    "sound": False,
    "defect": "Where two connected points coincide the gradient is 0 / 0 = NaN.",
    "rank": "wrong",
    "names": ["nan", "coincide", "zero length", "zero distance", "gradient of pos"],
    "first_law": "the gradient of pos",
}
