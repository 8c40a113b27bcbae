import torch

_workspace = {}


def _scratch(x):
    key = (x.dtype, x.device)
    if key not in _workspace or _workspace[key].numel() < x.numel():
        _workspace[key] = torch.empty(x.numel(), dtype=x.dtype, device=x.device)
    return _workspace[key][: x.numel()].view(x.shape)


class LaplacianSmooth(torch.autograd.Function):
    """One explicit step of the heat equation on a closed curve, points along dim -2."""

    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        y = _scratch(x)
        torch.add(x.roll(1, -2), x.roll(-1, -2), out=y)
        y.sub_(x, alpha=2).mul_(lam).add_(x)
        return y

    @staticmethod
    def backward(ctx, grad):
        # the operator is symmetric
        return grad + ctx.lam * (grad.roll(1, -2) + grad.roll(-1, -2) - 2 * grad), None


def laplacian_smooth(x, lam=0.25):
    return LaplacianSmooth.apply(x, lam)


function = laplacian_smooth
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(160)
    x, y = torch.randn(2, 6, 2, generator=g, dtype=torch.float64)
    return [((x,), {}), ((y,), {}), ((x[:4],), {"lam": 0.5})]


def primal(x, lam=0.25):
    return (1 - 2 * lam) * x + lam * torch.roll(x, 1, -2) + lam * torch.roll(x, -1, -2)


def show():
    (first, _), (second, _) = calls()[:2]
    a = function(*first)
    kept = a.clone()
    function(*second)
    return torch.allclose(kept, primal(*first)) and not torch.allclose(a, kept)


TRUTH = {
    "sound": False,
    "defect": "All calls write their result into one shared buffer: the next call overwrites the output of the one "
    "before.",
    "rank": "wrong",
    "names": ["buffer", "overwrites", "overwritten", "shares memory", "earlier output", "alias", "storage"],
    "first_law": "an earlier output is overwritten",
}
