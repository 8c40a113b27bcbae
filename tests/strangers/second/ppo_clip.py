import torch


class PPOClip(torch.autograd.Function):
    """Clipped surrogate objective of PPO, to be minimised. Old log-probs and advantages are data."""

    @staticmethod
    def forward(ctx, logp, logp_old, advantage, eps):
        ctx.save_for_backward(logp, logp_old, advantage)
        ctx.eps = eps
        ratio = torch.exp(logp - logp_old)
        return -torch.minimum(ratio * advantage, ratio.clamp(1 - eps, 1 + eps) * advantage).mean()

    @staticmethod
    def backward(ctx, grad_loss):
        logp, logp_old, advantage = ctx.saved_tensors
        ratio = torch.exp(logp - logp_old)
        clipped = ratio.clamp(1 - ctx.eps, 1 + ctx.eps)
        active = ratio * advantage <= clipped * advantage
        grad = -grad_loss / logp.numel() * active * ratio * advantage
        return grad, None, None, None


def ppo_clip(logp, *, logp_old, advantage, eps=0.2):
    return PPOClip.apply(logp, logp_old, advantage, eps)


function = ppo_clip
wrt = ("logp",)


def calls():
    g = torch.Generator().manual_seed(114)
    new, old, adv = torch.randn(3, 12, generator=g, dtype=torch.float64)
    new = old + 0.4 * new
    return [
        ((new,), {"logp_old": old, "advantage": adv}),
        ((new.view(3, 4),), {"logp_old": old.view(3, 4), "advantage": adv.view(3, 4), "eps": 0.05}),
    ]


def primal(logp, *, logp_old, advantage, eps=0.2):
    ratio = (logp - logp_old).exp()
    return -torch.min(ratio * advantage, ratio.clamp(1 - eps, 1 + eps) * advantage).mean()


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
