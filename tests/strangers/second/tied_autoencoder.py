import torch
from torch import nn


class _TiedFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, enc, dec):
        ctx.save_for_backward(x, enc, dec)
        return torch.tanh(x @ enc.t()) @ dec

    @staticmethod
    def backward(ctx, grad):
        x, enc, dec = ctx.saved_tensors
        h = torch.tanh(x @ enc.t())
        dh = (grad @ dec.t()) * (1 - h * h)
        grad_x = dh @ enc
        grad_w = dh.t() @ x + h.t() @ grad
        return grad_x, grad_w, grad_w


class TiedAutoencoder(nn.Module):
    """Autoencoder whose decoder is the transpose of its encoder. x (B, D)."""

    def __init__(self, d, hidden, generator=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, d, generator=generator, dtype=torch.float64) / d**0.5)

    def forward(self, x):
        return _TiedFn.apply(x, self.weight, self.weight)


def module():
    return TiedAutoencoder(4, 3, torch.Generator().manual_seed(148))


wrt = ("x", "weight")


def calls():
    g = torch.Generator().manual_seed(248)
    x = torch.randn(5, 4, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[:1],), {})]


def primal(model, x):
    return (x @ model.weight.T).tanh() @ model.weight


def show():
    model, ((x,), _) = module(), calls()[0]
    (mine,) = torch.autograd.grad(model(x).sum(), model.weight)
    (true,) = torch.autograd.grad(primal(model, x).sum(), model.weight)
    return torch.allclose(mine, 2 * true)


TRUTH = {
    "sound": False,
    "defect": "The gradient of the shared weight is counted twice: the whole sum is returned for both of its uses.",
    "rank": "wrong",
    "names": ["gradient of weight", "weight", "twice", "shared", "counted"],
    "first_law": "the gradient of weight",
}
