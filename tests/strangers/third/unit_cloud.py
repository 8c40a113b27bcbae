import torch
from torch.autograd import Function


class UnitCloud(Function):
    """Scales every cloud of a batch (B, N, 3) to root mean square radius one."""

    @staticmethod
    def forward(ctx, points):
        rms = points.square().sum(-1).mean(-1).sqrt()[:, None, None]
        ctx.save_for_backward(points)
        return points / rms

    @staticmethod
    def backward(ctx, grad):
        (points,) = ctx.saved_tensors
        n = points.shape[1]
        rms = points.square().sum(-1).mean(-1).sqrt()[:, None, None]
        unit = points / rms
        along = (grad * unit).sum() / n
        return (grad - unit * along) / rms


def unit_cloud(points):
    return UnitCloud.apply(points)


function = unit_cloud
wrt = ("points",)


def calls():
    g = torch.Generator().manual_seed(324)
    p = torch.randn(3, 4, 3, generator=g, dtype=torch.float64)
    return [((p[:1],), {}), ((p,), {})]


def primal(points):
    return torch.stack([p / (p.norm() / len(p) ** 0.5) for p in points])


def show():
    off = []
    for (p,), _ in calls():
        p.requires_grad_()
        v = torch.arange(p.numel(), dtype=p.dtype).reshape(p.shape)
        (mine,) = torch.autograd.grad(function(p), p, v)
        (true,) = torch.autograd.grad(primal(p), p, v)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-10 and off[1] > 1e-1


TRUTH = {
    "sound": False,
    "defect": "The projection term of backward is summed over the whole batch instead of over each cloud: the gradient "
    "of one cloud depends on the others.",
    "rank": "wrong",
    "names": ["batch", "gradient of points", "mixes", "samples", "sum"],
    "first_law": "the gradient of points",
}
