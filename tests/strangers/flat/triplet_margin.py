import torch


class TripletMargin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, positive, negative, margin):
        ap = (anchor - positive).pow(2).sum(1)
        an = (anchor - negative).pow(2).sum(1)
        ctx.save_for_backward(anchor, positive, negative)
        ctx.margin = margin
        return (ap - an + margin).clamp(min=0).mean()

    @staticmethod
    def backward(ctx, g):
        a, p, n = ctx.saved_tensors
        loss = (a - p).pow(2).sum(1) - (a - n).pow(2).sum(1) + ctx.margin
        w = 2 * g * (loss > 0).to(a.dtype)[:, None] / a.shape[0]
        return w * (n - p), w * (a - n), w * (p - a), None


def triplet_loss(anchor, positive, negative, margin=0.2):
    return TripletMargin.apply(anchor, positive, negative, margin)


function = triplet_loss
wrt = ("anchor", "positive", "negative")


def calls():
    g = torch.Generator().manual_seed(110)
    a = torch.randn(4, 3, generator=g, dtype=torch.float64)
    p = a + 0.01 * torch.randn(4, 3, generator=g, dtype=torch.float64)
    n = a + 5
    return [((a, p, n), {}), ((a[:2], p[:2], n[:2], 1.0), {})]


def primal(anchor, positive, negative, margin=0.2):
    ap = (anchor - positive).pow(2).sum(1)
    an = (anchor - negative).pow(2).sum(1)
    return (ap - an + margin).clamp(min=0).mean()


def show():
    a, p, n = torch.randn(3, 4, 3, dtype=torch.float64)
    mine, true = [
        torch.autograd.grad(f(a, p.requires_grad_(), n.requires_grad_(), 50.0), (p, n))
        for f in (function, primal)
    ]
    return torch.allclose(mine[0], true[1]) and not torch.allclose(mine[0], true[0])


TRUTH = {
    "sound": False,
    "defect": "For active triplets the gradients of positive and negative are wrong: each uses the other's difference.",
    "rank": "wrong",
    "names": ["swap", "gradient of positive", "gradient of negative", "positive", "negative"],
    "first_law": "the gradient of positive",
    "flat_everywhere": True,
}
