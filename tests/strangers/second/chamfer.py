import torch
from torch.autograd.function import once_differentiable


class ChamferDistance(torch.autograd.Function):
    """Squared nearest-neighbour distances in both directions, and who the neighbours are."""

    @staticmethod
    def forward(ctx, xyz1, xyz2):
        d = (xyz1.unsqueeze(2) - xyz2.unsqueeze(1)).square().sum(-1)
        dist1, idx1 = d.min(2)
        dist2, idx2 = d.min(1)
        ctx.save_for_backward(xyz1, xyz2, idx1, idx2)
        ctx.mark_non_differentiable(idx1, idx2)
        return dist1, dist2, idx1, idx2

    @staticmethod
    @once_differentiable
    def backward(ctx, grad1, grad2, _idx1, _idx2):
        xyz1, xyz2, idx1, idx2 = ctx.saved_tensors
        i1 = idx1.unsqueeze(-1).expand(-1, -1, xyz1.shape[-1])
        i2 = idx2.unsqueeze(-1).expand(-1, -1, xyz1.shape[-1])
        d1 = 2 * grad1.unsqueeze(-1) * (xyz1 - xyz2.gather(1, i1))
        d2 = 2 * grad2.unsqueeze(-1) * (xyz2 - xyz1.gather(1, i2))
        return d1.scatter_add(1, i2, -d2), d2.scatter_add(1, i1, -d1)


def chamfer(xyz1, xyz2):
    return ChamferDistance.apply(xyz1, xyz2)


function = chamfer
wrt = ("xyz1", "xyz2")


def calls():
    g = torch.Generator().manual_seed(104)
    a = torch.randn(2, 7, 3, generator=g, dtype=torch.float64)
    b = torch.randn(2, 5, 3, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((a[:1, :1], b[:1]), {})]


def primal(xyz1, xyz2):
    d = (xyz1[:, :, None] - xyz2[:, None]).pow(2).sum(-1)
    dist1, idx1 = d.min(2)
    dist2, idx2 = d.min(1)
    return dist1, dist2, idx1, idx2


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
