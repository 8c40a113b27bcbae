import torch
from torch import nn


class RMSNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        r = 1.0 / (x.pow(2).mean(-1, keepdim=True).sqrt() + ctx.eps)
        dx = dw = None
        if ctx.needs_input_grad[0]:
            wdy = dy * weight
            dx = r * wdy - x * r**3 * (wdy * x).mean(-1, keepdim=True)
        if ctx.needs_input_grad[1]:
            dw = (dy * x * r).reshape(-1, x.shape[-1]).sum(0)
        return dx, dw, None


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5, dtype=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=dtype))
        self.eps = eps

    def forward(self, x):
        return RMSNormFn.apply(x, self.weight, self.eps)


module = lambda: RMSNorm(3, dtype=torch.float64)  # noqa: E731
wrt = ("x", "weight")


def calls():
    g = torch.Generator().manual_seed(54)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    small = 0.01 * torch.randn(2, 2, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((small,), {})]


def primal(module, x):
    return x / (x.square().mean(-1, keepdim=True) + module.eps).sqrt() * module.weight


def show():
    (x,), _ = calls()[1]
    m = module()
    x.requires_grad_()
    out = [torch.autograd.grad(f(x)[..., 0].sum(), x)[0] for f in (m, lambda x: primal(m, x))]
    return (out[0] - out[1]).norm() > 0.01 * out[1].norm()


TRUTH = {
    "sound": False,
    "defect": "forward adds eps under the square root and backward adds it to the root, so the gradients of x and weight are a little wrong, and clearly so for small x.",
    "rank": "wrong",
    "names": ["gradient of x", "gradient", "eps"],
    "first_law": "the gradient of x",
}
