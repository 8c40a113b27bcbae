import torch
import torch.nn.functional as F


class FocalLossFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, gamma):
        ctx.save_for_backward(logits, target)
        ctx.gamma = gamma
        s = 2 * target - 1
        logpt = F.logsigmoid(s * logits)
        return -((1 - logpt.exp()) ** gamma * logpt).mean()

    @staticmethod
    def backward(ctx, _):
        logits, target = ctx.saved_tensors
        gamma = ctx.gamma
        s = 2 * target - 1
        logpt = F.logsigmoid(s * logits)
        pt = logpt.exp()
        d = gamma * pt * (1 - pt) ** gamma * logpt - (1 - pt) ** (gamma + 1)
        return s * d / logits.numel(), None, None


def sigmoid_focal_loss(logits, target, gamma=2.0):
    return FocalLossFn.apply(logits, target, gamma)


function = sigmoid_focal_loss
wrt = ("logits",)


def calls():
    g = torch.Generator().manual_seed(26)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    t = (torch.rand(4, 3, generator=g) > 0.6).double()
    return [((x, t), {}), ((x[0], t[0], 1.5), {})]


def primal(logits, target, gamma=2.0):
    bce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return ((1 - torch.exp(-bce)) ** gamma * bce).mean()


def show():
    (x, t), _ = calls()[0]
    x.requires_grad_()
    (plain,) = torch.autograd.grad(function(x, t), x)
    (weighted,) = torch.autograd.grad(0.25 * function(x, t), x)
    (true,) = torch.autograd.grad(primal(x, t), x)
    return torch.allclose(plain, true) and torch.equal(plain, weighted)


TRUTH = {
    "sound": False,
    "defect": "backward assumes that grad_output is 1, so a weighted or scaled loss gets the unscaled gradient.",
    "rank": "wrong",
    "names": ["grad_output", "grad output", "incoming gradient", "upstream", "ignores", "linear"],
    "first_law": "backward is linear in grad_output, the gradient of logits",
}
