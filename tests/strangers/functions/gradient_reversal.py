import torch
from torch.autograd import Function


class ReverseLayerF(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


def grad_reverse(x, alpha=1.0):
    """Domain adaptation: identity forward, gradient times -alpha backward."""
    return ReverseLayerF.apply(x, alpha)


function = grad_reverse
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    f = torch.randn(2, 5, generator=g, dtype=torch.float64)
    return [((x,), {}), ((f, 0.25), {}), ((x,), {"alpha": 2.0})]


def primal(x, alpha=1.0):
    return x.clone()


def surrogate(x, alpha=1.0):
    return -alpha * x


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
