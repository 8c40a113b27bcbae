import torch


class TripletMargin(torch.autograd.Function):
    """relu(|a - p|^2 - |a - n|^2 + margin) per triplet."""

    margin = 1.0

    @staticmethod
    def forward(ctx, anchor, positive, negative):
        TripletMargin.saved = (anchor, positive, negative)
        d_pos = (anchor - positive).square().sum(-1)
        d_neg = (anchor - negative).square().sum(-1)
        return (d_pos - d_neg + TripletMargin.margin).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        a, p, n = TripletMargin.saved
        d = (a - p).square().sum(-1) - (a - n).square().sum(-1) + TripletMargin.margin
        g = 2 * (grad_output * (d > 0)).unsqueeze(-1)
        return g * (n - p), g * (p - a), g * (a - n)


def triplet_margin(anchor, positive, negative):
    return TripletMargin.apply(anchor, positive, negative)


function = triplet_margin
wrt = ("anchor", "positive", "negative")


def calls():
    g = torch.Generator().manual_seed(128)
    a, p, n = torch.randn(3, 5, 4, generator=g, dtype=torch.float64)
    b, q, m = torch.randn(3, 5, 4, generator=g, dtype=torch.float64)
    return [((a, p, n), {}), ((b, q, m), {})]


def primal(anchor, positive, negative):
    d_pos = (anchor - positive).pow(2).sum(-1)
    d_neg = (anchor - negative).pow(2).sum(-1)
    return torch.relu(d_pos - d_neg + 1.0)


def show():
    (first, _), (second, _) = calls()
    a = first[0].requires_grad_()
    alone = torch.autograd.grad(function(*first).sum(), a)[0]
    loss = function(*first).sum()
    function(*second)
    between = torch.autograd.grad(loss, a)[0]
    return torch.allclose(alone, torch.autograd.grad(primal(*first).sum(), a)[0]) and not torch.allclose(alone, between)


TRUTH = {
    "sound": False,
    "defect": "What backward needs is kept on the class: a second call before backward replaces it and the first "
    "gradient is that of the second call.",
    "rank": "wrong",
    "names": ["state", "class", "second call", "between forward and backward", "shared between calls", "interleaved"],
    "first_law": "two calls before backward",
}
