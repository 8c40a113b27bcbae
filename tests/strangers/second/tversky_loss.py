import torch


class TverskyLoss(torch.autograd.Function):
    """1 - TP / (TP + alpha FP + beta FN) of every sample; target is data and gets no gradient."""

    @staticmethod
    def forward(ctx, prob, target, alpha, beta, smooth):
        ctx.save_for_backward(prob, target)
        ctx.alpha, ctx.beta, ctx.smooth = alpha, beta, smooth
        p, t = prob.flatten(1), target.flatten(1)
        tp = (p * t).sum(1)
        den = tp + alpha * (p * (1 - t)).sum(1) + beta * ((1 - p) * t).sum(1)
        return 1 - (tp + smooth) / (den + smooth)

    @staticmethod
    def backward(ctx, grad_output):
        prob, target = ctx.saved_tensors
        p, t = prob.flatten(1), target.flatten(1)
        tp = (p * t).sum(1, keepdim=True)
        den = tp + ctx.alpha * (p * (1 - t)).sum(1, keepdim=True) + ctx.beta * ((1 - p) * t).sum(1, keepdim=True)
        num, den = tp + ctx.smooth, den + ctx.smooth
        dden = t + ctx.alpha * (1 - t) - ctx.beta * t
        grad = -(t / den - num * dden / den**2)
        return (grad_output.unsqueeze(1) * grad).reshape(prob.shape), None, None, None, None


def tversky_loss(prob, target, *, alpha=0.3, beta=0.7, smooth=1.0):
    return TverskyLoss.apply(prob, target, alpha, beta, smooth)


function = tversky_loss
wrt = ("prob",)


def calls():
    g = torch.Generator().manual_seed(105)
    p = torch.rand(3, 1, 4, 5, generator=g, dtype=torch.float64)
    t = (torch.rand(3, 1, 4, 5, generator=g, dtype=torch.float64) > 0.6).double()
    return [((p, t), {}), ((p[:1], torch.zeros_like(t[:1])), {"alpha": 0.5, "beta": 0.5, "smooth": 1e-2})]


def primal(prob, target, *, alpha=0.3, beta=0.7, smooth=1.0):
    dims = tuple(range(1, prob.dim()))
    tp = (prob * target).sum(dims)
    fp = (prob * (1 - target)).sum(dims)
    fn = ((1 - prob) * target).sum(dims)
    return 1 - (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
