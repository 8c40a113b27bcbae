"""Negative log-likelihood of the generalised normal with learned scale and shape."""

import torch


class GeneralizedGaussianNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mu, alpha, beta):
        ctx.save_for_backward(x, mu, alpha, beta)
        z = (x - mu).abs() / alpha
        return (z**beta + torch.log(2 * alpha) + torch.lgamma(1 / beta) - torch.log(beta)).sum()

    @staticmethod
    def backward(ctx, grad):
        x, mu, alpha, beta = ctx.saved_tensors
        diff = x - mu
        z = diff.abs() / alpha
        g_x = grad * beta / alpha * z ** (beta - 1) * diff.sign()
        g_alpha = grad * ((1 - beta * z**beta) / alpha).sum()
        return g_x, -g_x.sum_to_size(mu.shape), g_alpha, None


def ggd_nll(x, mu, alpha, beta):
    return GeneralizedGaussianNLL.apply(x, mu, alpha, beta)


def primal(x, mu, alpha, beta):
    z = ((x - mu) / alpha).abs()
    per = z.pow(beta) - torch.log(beta / (2 * alpha)) + torch.lgamma(1 / beta)
    return per.sum()


surrogate = primal
FUNCTION = ggd_nll
WRT = ("x", "mu", "alpha", "beta")


def _args(seed, shape, mshape, alpha, beta):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=gen, dtype=torch.float64)
    mu = torch.randn(mshape, generator=gen, dtype=torch.float64)
    return x, mu, torch.tensor(alpha, dtype=torch.float64), torch.tensor(beta, dtype=torch.float64)


CALLS = [lambda: _args(0, (4,), (4,), 0.7, 1.5), lambda: _args(1, (3, 2), (2,), 1.3, 2.5)]
LIMITS = ("vmap", "jvp")
DEFECT = "no gradient for beta, though it is a parameter"
KEYWORDS = ("beta", "none", "missing", "zero", "gradient")
