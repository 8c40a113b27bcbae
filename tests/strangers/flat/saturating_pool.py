import torch


class SaturatingMaxPool(torch.autograd.Function):
    """max over the last dimension, saturating at 1"""

    @staticmethod
    def forward(ctx, x):
        value, index = x.max(dim=-1)
        ctx.save_for_backward(x, index)
        return value.clamp(max=1)

    @staticmethod
    def backward(ctx, grad_out):
        x, index = ctx.saved_tensors
        grad = torch.zeros_like(x)
        value = x.gather(-1, index.unsqueeze(-1))
        grad.scatter(-1, index.unsqueeze(-1), grad_out.unsqueeze(-1) * (value <= 1).to(x.dtype))
        return grad


function = SaturatingMaxPool.apply
wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(108)
    x = 2 + 7 * torch.rand(4, 3, generator=g, dtype=torch.float64)
    y = 4 * torch.randn(2, 2, 5, generator=g, dtype=torch.float64)
    y[..., 0] = 5 + y[..., 0].abs()
    return [((x,), {}), ((y,), {})]


def primal(x):
    return x.max(dim=-1).values.clamp(max=1)


def show():
    x = torch.tensor([[0.1, 0.5], [-3.0, -2.0]], requires_grad=True)
    function(x).sum().backward()
    return not x.grad.any()


TRUTH = {
    "sound": False,
    "defect": "scatter (not scatter_) is called and its result dropped, so the gradient is zero everywhere.",
    "rank": "wrong",
    "names": ["zero", "gradient of x", "flat", "dead"],
    "first_law": "the gradient of x",
    "flat_everywhere": True,
}
