import math

import torch


def _log_joint(x, mu, log_sigma, logits):
    d = x.shape[1]
    sq = (x.unsqueeze(1) - mu).square().sum(-1)
    log_n = -0.5 * sq * torch.exp(-2 * log_sigma) - d * log_sigma - 0.5 * d * math.log(2 * math.pi)
    return log_n + torch.log_softmax(logits, 0)


class GMMNegLogLik(torch.autograd.Function):
    """-log p(x) of every row under a mixture of isotropic Gaussians.

    x (N, D), mu (K, D), log_sigma (K,), logits (K,).
    """

    @staticmethod
    def forward(ctx, x, mu, log_sigma, logits):
        ctx.save_for_backward(x, mu, log_sigma, logits)
        return -torch.logsumexp(_log_joint(x, mu, log_sigma, logits), 1)

    @staticmethod
    def backward(ctx, grad):
        x, mu, log_sigma, logits = ctx.saved_tensors
        resp = torch.softmax(_log_joint(x, mu, log_sigma, logits), 1)
        gr = grad.unsqueeze(1) * resp
        prec = torch.exp(-2 * log_sigma)
        diff = x.unsqueeze(1) - mu
        pull = (gr * prec).unsqueeze(-1) * diff
        grad_sigma = (gr * (x.shape[1] - diff.square().sum(-1) * prec)).sum(0)
        grad_logits = grad.sum() * torch.softmax(logits, 0) - gr.sum(0)
        return pull.sum(1), -pull.sum(0), grad_sigma, grad_logits


def gmm_nll(x, mu, log_sigma, logits):
    return GMMNegLogLik.apply(x, mu, log_sigma, logits)


function = gmm_nll
wrt = ("x", "mu", "log_sigma", "logits")


def calls():
    g = torch.Generator().manual_seed(119)
    x = torch.randn(6, 2, generator=g, dtype=torch.float64)
    mu = torch.randn(3, 2, generator=g, dtype=torch.float64)
    s, w = 0.3 * torch.randn(2, 3, generator=g, dtype=torch.float64)
    return [((x, mu, s, w), {}), ((x[:1], mu[:1], s[:1], w[:1]), {})]


def primal(x, mu, log_sigma, logits):
    n = torch.distributions.Independent(torch.distributions.Normal(mu, log_sigma.exp()[:, None].expand_as(mu)), 1)
    return -torch.logsumexp(n.log_prob(x[:, None]) + logits.log_softmax(0), 1)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
