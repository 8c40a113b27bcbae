import math

import torch


def _d(spot, strike, sigma, expiry, rate):
    vol = sigma * math.sqrt(expiry)
    d1 = (torch.log(spot / strike) + rate * expiry) / vol + 0.5 * vol
    return d1, d1 - vol


class BlackScholesCall(torch.autograd.Function):
    """Price of European calls; backward hands out the closed-form greeks. Arguments broadcast."""

    @staticmethod
    def forward(spot, strike, sigma, expiry, rate):
        d1, d2 = _d(spot, strike, sigma, expiry, rate)
        cdf = torch.special.ndtr
        return spot * cdf(d1) - strike * math.exp(-rate * expiry) * cdf(d2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        spot, strike, sigma, ctx.expiry, ctx.rate = inputs
        ctx.save_for_backward(spot, strike, sigma)

    @staticmethod
    def backward(ctx, grad):
        spot, strike, sigma = ctx.saved_tensors
        d1, d2 = _d(spot, strike, sigma, ctx.expiry, ctx.rate)
        delta = torch.special.ndtr(d1)
        dual_delta = -math.exp(-ctx.rate * ctx.expiry) * torch.special.ndtr(d2)
        vega = spot * math.sqrt(ctx.expiry) * torch.exp(-0.5 * d1**2) / math.sqrt(2 * math.pi)
        greeks = zip((delta, dual_delta, vega), (spot, strike, sigma))
        return *((grad * d).sum_to_size(v.shape) for d, v in greeks), None, None


def call_price(spot, strike, sigma, expiry=1.0, rate=0.02):
    return BlackScholesCall.apply(spot, strike, sigma, expiry, rate)


function = call_price
wrt = ("spot", "strike", "sigma")


def calls():
    g = torch.Generator().manual_seed(120)
    spot = 1 + 0.2 * torch.randn(5, 1, generator=g, dtype=torch.float64)
    strike = torch.linspace(0.8, 1.2, 3, dtype=torch.float64)
    sigma = torch.tensor(0.3, dtype=torch.float64)
    surface = 0.2 + 0.2 * torch.rand(5, 3, generator=g, dtype=torch.float64)
    return [((spot, strike, sigma), {}), ((spot, strike, surface), {"expiry": 0.25, "rate": 0.0})]


def primal(spot, strike, sigma, expiry=1.0, rate=0.02):
    vol = sigma * expiry**0.5
    d1 = ((spot / strike).log() + rate * expiry + vol**2 / 2) / vol
    n = torch.distributions.Normal(0.0, 1.0)
    return spot * n.cdf(d1) - strike * math.exp(-rate * expiry) * n.cdf(d1 - vol)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
