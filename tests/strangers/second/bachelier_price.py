import math

import torch


class BachelierCall(torch.autograd.Function):
    """Undiscounted call price in the normal model; sigma is the absolute volatility."""

    @staticmethod
    def forward(forward_price, strike, sigma, expiry):
        s = sigma * math.sqrt(expiry)
        d = (forward_price - strike) / s
        pdf = torch.exp(-0.5 * d * d) / math.sqrt(2 * math.pi)
        return (forward_price - strike) * torch.special.ndtr(d) + s * pdf

    @staticmethod
    def setup_context(ctx, inputs, output):
        forward_price, strike, sigma, expiry = inputs
        ctx.save_for_backward(forward_price, strike, sigma)
        ctx.expiry = expiry

    @staticmethod
    def backward(ctx, grad):
        forward_price, strike, sigma = ctx.saved_tensors
        d = (forward_price - strike) / (sigma * math.sqrt(ctx.expiry))
        delta = torch.special.ndtr(d)
        vega = math.sqrt(ctx.expiry) * torch.exp(-0.5 * d * d) / math.sqrt(2 * math.pi) / 100
        greeks = zip((delta, -delta, vega), (forward_price, strike, sigma))
        return *((grad * d).sum_to_size(v.shape) for d, v in greeks), None


def bachelier_call(forward_price, strike, sigma, expiry=1.0):
    return BachelierCall.apply(forward_price, strike, sigma, expiry)


function = bachelier_call
wrt = ("forward_price", "strike", "sigma")


def calls():
    g = torch.Generator().manual_seed(124)
    f = 0.03 + 0.01 * torch.randn(4, 1, generator=g, dtype=torch.float64)
    k = torch.tensor([0.02, 0.03, 0.04], dtype=torch.float64)
    s = torch.tensor(0.008, dtype=torch.float64)
    return [((100 * f, 100 * k, 100 * s), {}), ((100 * f[0], 100 * k, 100 * s), {"expiry": 5.0})]


def primal(forward_price, strike, sigma, expiry=1.0):
    n = torch.distributions.Normal(0.0, 1.0)
    s = sigma * expiry**0.5
    d = (forward_price - strike) / s
    return (forward_price - strike) * n.cdf(d) + s * n.log_prob(d).exp()


def show():
    (f, k, s), _ = calls()[0]
    s.requires_grad_()
    (mine,) = torch.autograd.grad(function(f, k, s).sum(), s)
    (true,) = torch.autograd.grad(primal(f, k, s).sum(), s)
    return torch.allclose(100 * mine, true)


TRUTH = {
    "sound": False,
    "defect": "The gradient of sigma is the vega per vol point, a hundredth of the derivative.",
    "rank": "wrong",
    "names": ["gradient of sigma", "sigma", "factor", "100"],
    "first_law": "the gradient of sigma",
}
