import torch


class CrossSectionZScore(torch.autograd.Function):
    """Standardise a signal over the assets of every date: x (dates, assets)."""

    @staticmethod
    def forward(ctx, x, eps):
        ctx.save_for_backward(x)
        ctx.eps = eps
        mu = x.mean(-1, keepdim=True)
        var = (x - mu).square().mean(-1, keepdim=True)
        return (x - mu) / (var + eps).sqrt()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        mu = x.mean(-1, keepdim=True)
        std = ((x - mu).square().mean(-1, keepdim=True) + ctx.eps).sqrt()
        z = (x - mu) / std
        gz = (grad * z).mean(-1)
        return (grad - grad.mean(-1, keepdim=True) - z * gz) / std, None


def zscore(x, eps=1e-6):
    return CrossSectionZScore.apply(x, eps)


function = zscore
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(126)
    a = torch.randn(5, 5, generator=g, dtype=torch.float64)
    b = torch.randn(1, 7, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {"eps": 1e-3})]


def primal(x, eps=1e-6):
    c = x - x.mean(-1, keepdim=True)
    return c / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()


def show():
    off = []
    for (x, *_), kw in calls():
        x.requires_grad_()
        w = torch.arange(x.numel(), dtype=x.dtype).view_as(x).sin()
        (mine,) = torch.autograd.grad((w * function(x, **kw)).sum(), x)
        (true,) = torch.autograd.grad((w * primal(x, **kw)).sum(), x)
        off.append((mine - true).abs().max().item())
    return off[0] > 1e-2 and off[1] < 1e-9


TRUTH = {
    "sound": False,
    "defect": "A mean in backward is taken without keepdim: it is applied to columns instead of rows (square "
    "input), or does not broadcast.",
    "rank": "wrong",
    "names": ["keepdim", "gradient of x", "axis", "rows", "broadcast"],
    "first_law": "the gradient of x",
}
