import torch
from torch import nn


class _Center(torch.autograd.Function):
    @staticmethod
    def forward(ctx, reward, gain, mean, momentum):
        ctx.save_for_backward(reward - mean, gain)
        ctx.batch_mean, ctx.mean, ctx.momentum = reward.mean(), mean, momentum
        return (reward - mean) * gain

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        centered, gain = ctx.saved_tensors
        ctx.mean.lerp_(ctx.batch_mean, ctx.momentum)
        return grad * gain, (grad * centered).sum(), None, None


class RewardCentering(nn.Module):
    """(r - mean) * gain with a running mean of the rewards, a constant to the gradient.

    In training the mean follows every batch passed through, for use from the next batch on.
    """

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros((), dtype=torch.float64))

    def forward(self, reward):
        if self.training:
            return _Center.apply(reward, self.gain, self.mean, 0.1)
        return (reward - self.mean) * self.gain


def module():
    return RewardCentering()


wrt = ("reward",)


def calls():
    a = 3 + torch.randn(4, 5, generator=torch.Generator().manual_seed(139), dtype=torch.float64)
    return [((a,), {}), ((a[0],), {})]


def primal(layer, reward):
    return (reward - layer.mean) * layer.gain


def show():
    layer = module()
    r = calls()[0][0][0].requires_grad_()
    loss, seen = layer(r).sum(), []
    for _ in range(2):
        seen.append(layer.mean.item())
        loss.backward(retain_graph=True)
    return seen[0] == 0 and seen[1] != 0 and layer.mean.item() != seen[1]


TRUTH = {
    "sound": False,
    "defect": "The running mean is updated in backward: not at all by a forward pass, and twice where backward "
    "runs twice.",
    "rank": "wrong",
    "names": ["buffer", "running mean", "updated in backward", "during backward", "buffer mean"],
    "first_law": "the buffer mean",
}
