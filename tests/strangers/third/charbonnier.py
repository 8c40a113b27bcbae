import torch


class Charbonnier(torch.autograd.Function):
    """Robust penalty of optical flow: sqrt(x^2 + eps^2)."""

    @staticmethod
    def forward(ctx, x, eps):
        y = torch.sqrt(x * x + eps * eps)
        ctx.save_for_backward(x / y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (slope,) = ctx.saved_tensors
        return grad_y * slope, None


def charbonnier(flow, target, eps=0.1):
    return Charbonnier.apply(flow - target, eps).mean()


function = charbonnier
wrt = ("flow", "target")


def calls():
    g = torch.Generator().manual_seed(319)
    a, b = torch.randn(2, 2, 3, 3, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((a, b), {"eps": 1.0})]


def primal(flow, target, eps=0.1):
    return torch.hypot(flow - target, torch.full_like(flow, eps)).mean()


def show():
    (a, b), _ = calls()[0]
    a.requires_grad_()
    w = torch.ones((), dtype=a.dtype, requires_grad=True)
    found = []
    for f in (function, primal):
        (first,) = torch.autograd.grad(w * f(a, b), a, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), a, allow_unused=True, materialize_grads=True)
        found.append((first, second))
    (m1, m2), (t1, t2) = found
    return torch.allclose(m1, t1) and not m2.any() and t2.abs().max().item() > 1e-3


TRUTH = {
    "sound": False,
    "defect": "backward uses the slope x / y made within forward, which knows no graph: the second derivative is zero "
    "without a word where it is not.",
    "rank": "wrong",
    "names": ["second derivative", "double backward", "Hessian", "once_differentiable", "slope", "saved"],
    "first_law": "the second derivative",
}
