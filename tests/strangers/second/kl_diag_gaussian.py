import torch


class KLDiagGaussian(torch.autograd.Function):
    """KL(N(mu, exp(logvar)) || N(0, 1)) per sample, for the VAE bottleneck."""

    @staticmethod
    def forward(ctx, mu, logvar):
        ctx.save_for_backward(mu, logvar)
        return 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(-1)

    @staticmethod
    def backward(ctx, grad_kl):
        mu, logvar = ctx.saved_tensors
        g = grad_kl.unsqueeze(-1)
        grad_logvar = 0.5 * g * (logvar.exp() - 1)
        grad_mu = g * mu
        return grad_logvar, grad_mu


def kl_diag_gaussian(mu, logvar):
    return KLDiagGaussian.apply(mu, logvar)


function = kl_diag_gaussian
wrt = ("mu", "logvar")


def calls():
    g = torch.Generator().manual_seed(127)
    mu, lv = torch.randn(2, 4, 6, generator=g, dtype=torch.float64)
    return [((mu, lv), {}), ((mu[0], lv[0]), {})]


def primal(mu, logvar):
    p = torch.distributions.Normal(mu, (0.5 * logvar).exp())
    q = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
    return torch.distributions.kl_divergence(p, q).sum(-1)


def show():
    (mu, lv), _ = calls()[0]
    mu.requires_grad_(), lv.requires_grad_()
    mine = torch.autograd.grad(function(mu, lv).sum(), (mu, lv))
    true = torch.autograd.grad(primal(mu, lv).sum(), (mu, lv))
    return torch.allclose(mine[0], true[1]) and torch.allclose(mine[1], true[0])


TRUTH = {
    "sound": False,
    "defect": "The gradients of mu and logvar are returned in the wrong order.",
    "rank": "wrong",
    "names": ["swapped", "order", "gradient of mu", "gradient of logvar", "mu", "logvar"],
    "first_law": "the gradient of mu",
}
