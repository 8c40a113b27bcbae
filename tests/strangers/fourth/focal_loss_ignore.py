import torch


class FocalLoss(torch.autograd.Function):
    """Multi-class focal loss, mean over the targets that are not ignored."""

    @staticmethod
    def forward(logits, target, gamma, ignore_index):
        keep = target != ignore_index
        logp = torch.log_softmax(logits, 1).gather(1, target.masked_fill(~keep, 0)[:, None])[:, 0]
        loss = -((1 - logp.exp()) ** gamma) * logp
        return (loss * keep).sum() / keep.sum().clamp(min=1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        logits, target, gamma, ignore_index = inputs
        ctx.save_for_backward(logits, target)
        ctx.gamma, ctx.ignore_index = gamma, ignore_index

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        gamma = ctx.gamma
        keep = target != ctx.ignore_index
        index = target.masked_fill(~keep, 0)[:, None]
        all_logp = torch.log_softmax(logits, 1)
        logp = all_logp.gather(1, index)
        p = logp.exp()
        coef = gamma * (1 - p) ** (gamma - 1) * p * logp - (1 - p) ** gamma
        coef = coef * keep[:, None] / keep.sum().clamp(min=1)
        onehot = torch.zeros_like(logits).scatter(1, index, 1.0)
        return grad * coef * (onehot - all_logp.exp()), None, None, None


def focal_loss(logits, target, gamma, ignore_index):
    return FocalLoss.apply(logits, target, gamma, ignore_index)


def primal(logits, target, gamma, ignore_index):
    keep = target != ignore_index
    if not keep.any():
        return logits.sum() * 0
    ce = torch.nn.functional.cross_entropy(logits[keep], target[keep], reduction="none")
    return ((1 - torch.exp(-ce)) ** gamma * ce).mean()


surrogate = primal
FUNCTION = focal_loss
WRT = ("logits",)


def _logits(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [
    lambda: (_logits(0, 5, 4), torch.tensor([0, 3, -100, 1, 1]), 2.0, -100),
    lambda: (_logits(1, 3, 2), torch.tensor([1, 0, 1]), 1.5, 255),
    lambda: (_logits(2, 2, 3), torch.tensor([255, 255]), 2.0, 255),
]
LIMITS = ("vmap", "jvp", "half")
DEFECT = ""
KEYWORDS = ()
