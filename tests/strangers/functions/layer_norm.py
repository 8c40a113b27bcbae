import torch
from torch.autograd.function import once_differentiable


class LayerNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        mu = x.mean(-1, keepdim=True)
        var = ((x - mu) ** 2).mean(-1, keepdim=True)
        rstd = torch.rsqrt(var + eps)
        x_hat = (x - mu) * rstd
        ctx.save_for_backward(x_hat, rstd, weight)
        return x_hat * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x_hat, rstd, weight = ctx.saved_tensors
        D = x_hat.shape[-1]
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            wdy = weight * dy
            c1 = (wdy * x_hat).mean(-1, keepdim=True)
            c2 = wdy.mean(-1, keepdim=True)
            dx = (wdy - c2 - x_hat * c1) * rstd
        if ctx.needs_input_grad[1]:
            dw = (dy * x_hat).reshape(-1, D).sum(0)
        if ctx.needs_input_grad[2]:
            db = dy.reshape(-1, D).sum(0)
        return dx, dw, db, None


def layer_norm(x, weight, bias, eps=1e-5):
    return LayerNormFunction.apply(x, weight, bias, eps)


function = layer_norm
wrt = ("x", "weight", "bias")


def calls():
    g = torch.Generator().manual_seed(1)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    s = torch.randn(2, 5, 6, generator=g, dtype=torch.float64)
    w3, b3 = torch.randn(2, 3, generator=g, dtype=torch.float64)
    w6, b6 = torch.randn(2, 6, generator=g, dtype=torch.float64)
    return [((x, w3, b3), {}), ((s, w6, b6), {"eps": 1e-3})]


def primal(x, weight, bias, eps=1e-5):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
