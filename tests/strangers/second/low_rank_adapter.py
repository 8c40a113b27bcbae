import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LowRankLinear(torch.autograd.Function):
    """x W^T + scale * x A^T B^T. W (out, in) is usually frozen, A (r, in) and B (out, r) are trained."""

    @staticmethod
    def forward(ctx, x, W, A, B, scale):
        ctx.save_for_backward(x, W, A, B)
        ctx.scale = scale
        return x @ W.t() + scale * (x @ A.t()) @ B.t()

    @staticmethod
    def backward(ctx, grad):
        x, W, A, B = ctx.saved_tensors
        g2, x2 = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        gb = ctx.scale * g2 @ B
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = (g2 @ W + gb @ A).reshape(x.shape)
        grad_W = g2.t() @ x2
        grad_A = gb.t() @ x2 if ctx.needs_input_grad[2] else None
        grad_B = ctx.scale * g2.t() @ (x2 @ A.t()) if ctx.needs_input_grad[3] else None
        return grad_x, grad_W, grad_A, grad_B, None


def low_rank_linear(x, W, A, B, scale=2.0):
    return LowRankLinear.apply(x, W, A, B, scale)


function = low_rank_linear
wrt = ("x", "W", "A", "B")


def calls():
    g = torch.Generator().manual_seed(157)
    x = torch.randn(3, 6, generator=g, dtype=torch.float64)
    W = torch.randn(5, 6, generator=g, dtype=torch.float64)
    A = torch.randn(2, 6, generator=g, dtype=torch.float64)
    B = torch.randn(5, 2, generator=g, dtype=torch.float64)
    return [((x, W, A, B), {}), ((x.view(1, 3, 6), W, A, B), {"scale": 0.5})]


def primal(x, W, A, B, scale=2.0):
    return torch.nn.functional.linear(x, W + scale * B @ A)


def show():
    made = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made.append(func(*args, **(kwargs or {})))
            return made[-1]

    (x, W, A, B), _ = calls()[0]
    loss = function(x, W, A.requires_grad_(), B.requires_grad_()).sum()
    with Watch():
        loss.backward()
    return any(t.shape == W.shape for t in made)


TRUTH = {
    "sound": False,
    "defect": "backward computes the full gradient of W, the largest product of all, also where W is frozen.",
    "rank": "waste",
    "names": ["gradient of W", "needs_input_grad", "frozen", "unneeded", "not needed"],
    "first_law": "work for a gradient nobody asked for",
}
