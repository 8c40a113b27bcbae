import torch


class SoftThreshold_(torch.autograd.Function):
    """Proximal step of the l1 norm, in place (ISTA)."""

    @staticmethod
    def forward(ctx, x, lam):
        x.copy_(torch.sign(x) * (x.abs() - lam).clamp_(min=0))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (y != 0), None


def soft_threshold_(x, lam=0.5):
    return SoftThreshold_.apply(x, lam)


function = soft_threshold_
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(115)
    a = torch.randn(4, 5, generator=g, dtype=torch.float64)
    b = torch.randn(9, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b, 0.1), {})]


def primal(x, lam=0.5):
    return torch.nn.functional.softshrink(x, lam)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
