import torch
import torch.nn.functional as F


class LabelSmoothCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, smoothing):
        logp = F.log_softmax(logits, dim=1)
        nll = -logp.gather(1, target[:, None]).squeeze(1)
        uniform = -logp.mean(dim=1)
        ctx.save_for_backward(logits, target)
        ctx.smoothing = smoothing
        return ((1 - smoothing) * nll + smoothing * uniform).mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, target = ctx.saved_tensors
        n, c = logits.shape
        prob = F.softmax(logits, dim=1)
        soft = torch.full_like(logits, ctx.smoothing / c)
        soft.scatter_(1, target[:, None], 1 - ctx.smoothing + ctx.smoothing / c)
        return grad_output * (prob - soft) / n, None, None


def label_smoothing_loss(logits, target, smoothing=0.1):
    return LabelSmoothCE.apply(logits, target, smoothing)


function = label_smoothing_loss
wrt = ("logits",)


def calls():
    g = torch.Generator().manual_seed(14)
    logits = torch.randn(5, 4, generator=g, dtype=torch.float64)
    target = torch.tensor([0, 3, 1, 1, 2])
    return [((logits, target), {}), ((logits[:1], target[:1], 0.3), {})]


def primal(logits, target, smoothing=0.1):
    return F.cross_entropy(logits, target, label_smoothing=smoothing)


TRUTH = {
    "sound": True,
    "defect": "",
    "rank": "sound",
    "names": [],
    "first_law": "",
}
