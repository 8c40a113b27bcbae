import torch
from torch import nn


class _RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, qmax):
        return torch.round(x / scale).clamp(-qmax, qmax) * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None, None


class ObservedQuant(nn.Module):
    """Symmetric fake quantisation. In training it remembers the largest magnitude it has seen, so that
    nothing is ever clipped; in evaluation the range stays as it is and values outside get no gradient."""

    def __init__(self, bits=4):
        super().__init__()
        self.qmax = 2 ** (bits - 1) - 1
        self.register_buffer("amax", torch.tensor(1e-6, dtype=torch.float64))

    def forward(self, x):
        if self.training:
            self.amax.copy_(torch.maximum(self.amax, x.detach().abs().max()))
        x = x.clamp(-self.amax, self.amax)
        return _RoundSTE.apply(x, self.amax / self.qmax, self.qmax)


def module():
    return ObservedQuant()


wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(117)
    a = torch.randn(5, 4, generator=g, dtype=torch.float64)
    b = 10 * torch.randn(2, 3, 2, generator=g, dtype=torch.float64)
    return [((a,), {}), ((b,), {})]


def _range(quant, x):
    return torch.maximum(quant.amax, x.detach().abs().max()) if quant.training else quant.amax


def primal(quant, x):
    scale = _range(quant, x) / quant.qmax
    return (x / scale).round().clamp(-quant.qmax, quant.qmax) * scale


def surrogate(quant, x):
    return x.clamp(-_range(quant, x), _range(quant, x))


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
