import torch


class PoissonNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log_rate, counts, reduction):
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"unknown reduction {reduction!r}")
        ctx.save_for_backward(log_rate, counts)
        loss = log_rate.exp() - counts * log_rate + torch.lgamma(counts.to(log_rate) + 1)
        return loss if reduction == "none" else getattr(loss, reduction)()

    @staticmethod
    def backward(ctx, grad):
        log_rate, counts = ctx.saved_tensors
        return grad * (log_rate.exp() - counts), None, None


def poisson_counts(log_rate, counts, *, reduction="mean"):
    """Photon counting: exact negative log likelihood. counts are integers."""
    return PoissonNLL.apply(log_rate, counts, reduction)


function = poisson_counts
wrt = ("log_rate",)


def calls():
    g = torch.Generator().manual_seed(331)
    x = torch.randn(3, 4, generator=g, dtype=torch.float64)
    n = torch.randint(0, 6, (3, 4), generator=g)
    return [((x, n), {"reduction": "none"}), ((x, n), {"reduction": "sum"}), ((x, n), {})]


def primal(log_rate, counts, *, reduction="mean"):
    loss = torch.exp(log_rate) - counts * log_rate + torch.lgamma(counts.to(log_rate) + 1)
    return {"none": loss, "mean": loss.sum() / loss.numel(), "sum": loss.sum()}[reduction]


def show():
    off = []
    for (x, n), k in calls():
        x.requires_grad_()
        (mine,) = torch.autograd.grad(function(x, n, **k).sum(), x)
        (true,) = torch.autograd.grad(primal(x, n, **k).sum(), x)
        off.append((mine - true).abs().max().item())
    return off[0] == off[1] == 0 and off[2] > 1e-1


TRUTH = {
    "sound": False,
    "defect": "With reduction='mean' the gradient is not divided by the number of elements.",
    "rank": "wrong",
    "names": ["mean", "reduction", "factor", "divided", "gradient of log_rate"],
    "first_law": "the gradient of log_rate",
}
