import torch


class InfoNCE(torch.autograd.Function):
    """Contrastive loss of two views (B, D): cross entropy of z1 z2^T / tau against the diagonal."""

    @staticmethod
    def forward(ctx, z1, z2, tau):
        ctx.save_for_backward(z1, z2)
        ctx.tau = tau
        logp = torch.log_softmax(z1 @ z2.t() / tau, 1)
        return -logp.diagonal().mean()

    @staticmethod
    def backward(ctx, grad_loss):
        z1, z2 = ctx.saved_tensors
        p = torch.softmax(z1 @ z2.t() / ctx.tau, 1)
        d = grad_loss * (p - torch.eye(len(p), dtype=p.dtype, device=p.device)) / len(p)
        return d @ z2, d.t() @ z1, None


def info_nce(z1, z2, tau=0.2):
    return InfoNCE.apply(z1, z2, tau)


function = info_nce
wrt = ("z1", "z2")


def calls():
    g = torch.Generator().manual_seed(155)
    z = torch.nn.functional.normalize(torch.randn(2, 5, 4, generator=g, dtype=torch.float64), dim=-1)
    return [((z[0], z[1]), {}), ((z[0, :3], z[1, :3]), {"tau": 1.0})]


def primal(z1, z2, tau=0.2):
    return torch.nn.functional.cross_entropy(z1 @ z2.T / tau, torch.arange(len(z1)))


def show():
    (z1, z2), _ = calls()[0]
    z1.requires_grad_()
    (mine,) = torch.autograd.grad(function(z1, z2), z1)
    (true,) = torch.autograd.grad(primal(z1, z2), z1)
    return torch.allclose(mine, 0.2 * true)


TRUTH = {
    "sound": False,
    "defect": "The gradients lack the factor 1 / tau of the temperature.",
    "rank": "wrong",
    "names": ["temperature", "tau", "factor", "gradient of z1", "gradient of z2"],
    "first_law": "the gradient of z1",
}
