import torch
from torch import nn


class _WNLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, g, bias):
        ctx.save_for_backward(x, v, g)
        w = v * (g / v.norm(dim=1)).unsqueeze(1)
        return x @ w.t() + bias

    @staticmethod
    def backward(ctx, grad):
        x, v, g = ctx.saved_tensors
        norm = v.norm(dim=1, keepdim=True)
        unit = v / norm
        grad_x = grad_v = grad_g = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_x = grad @ (unit * g.unsqueeze(1))
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            grad_w = grad.reshape(-1, grad.shape[-1]).t() @ x.reshape(-1, x.shape[-1])
            along = (grad_w * unit).sum(1)
            grad_g = along
            grad_v = g.unsqueeze(1) / norm * (grad_w - along.unsqueeze(1) * unit)
        if ctx.needs_input_grad[3]:
            grad_b = grad.reshape(-1, grad.shape[-1]).sum(0)
        return grad_x, grad_v, grad_g, grad_b


class WeightNormLinear(nn.Module):
    """Linear layer whose rows are g * v / |v| (Salimans & Kingma 2016)."""

    def __init__(self, d_in, d_out, generator=None):
        super().__init__()
        v = torch.randn(d_out, d_in, generator=generator, dtype=torch.float64)
        self.v = nn.Parameter(v)
        self.g = nn.Parameter(torch.linspace(0.5, 2.0, d_out, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(d_out, dtype=torch.float64))

    def forward(self, x):
        return _WNLinear.apply(x, self.v, self.g, self.bias)


def module():
    return WeightNormLinear(4, 3, torch.Generator().manual_seed(118))


wrt = ("x", "v", "g", "bias")


def calls():
    g = torch.Generator().manual_seed(218)
    x = torch.randn(5, 4, generator=g, dtype=torch.float64)
    y = torch.randn(2, 3, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((y,), {}), ((x[0],), {})]


def primal(layer, x):
    w = torch.nn.functional.normalize(layer.v, dim=1) * layer.g[:, None]
    return torch.nn.functional.linear(x, w, layer.bias)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
