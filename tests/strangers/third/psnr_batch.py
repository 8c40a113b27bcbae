import math

import torch


class PSNR(torch.autograd.Function):
    """Peak signal to noise ratio of each picture of a batch, in dB."""

    @staticmethod
    def forward(ctx, pred, target, peak):
        diff = pred - target
        mse = diff.square().flatten(1).mean(1)
        ctx.save_for_backward(diff, mse)
        return 10 * torch.log10(peak**2 / mse)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        diff, mse = ctx.saved_tensors
        n = diff[0].numel()
        shape = [-1] + [1] * (diff.dim() - 1)
        g = -20 / (math.log(10) * n) * diff / mse.view(shape)
        g = g * grad_output.mean()
        return g, -g, None


def psnr_batch(pred, target, peak=1.0):
    return PSNR.apply(pred, target, peak)


function = psnr_batch
wrt = ("pred", "target")


def calls():
    g = torch.Generator().manual_seed(304)
    a = torch.rand(3, 1, 4, 4, generator=g, dtype=torch.float64)
    b = torch.rand(3, 1, 4, 4, generator=g, dtype=torch.float64)
    return [((a, b), {}), ((255 * a[:2], 255 * b[:2]), {"peak": 255.0})]


def primal(pred, target, peak=1.0):
    mse = (pred - target).pow(2).mean(dim=tuple(range(1, pred.dim())))
    return 20 * math.log10(peak) - 10 * mse.log() / math.log(10)


def show():
    (a, b), _ = calls()[0]
    a.requires_grad_()
    off = []
    for v in (torch.full((3,), 0.7, dtype=a.dtype), torch.tensor([1.0, 0.0, -2.0], dtype=a.dtype)):
        (mine,) = torch.autograd.grad(function(a, b), a, v)
        (true,) = torch.autograd.grad(primal(a, b), a, v)
        off.append((mine - true).abs().max().item())
    return off[0] < 1e-10 and off[1] > 1e-2


TRUTH = {
    "sound": False,
    "defect": "backward multiplies every picture's gradient by the mean of the incoming gradient: right only if that "
    "is the same for all of the batch.",
    "rank": "wrong",
    "names": ["gradient of pred", "incoming gradient", "grad_output", "uniform", "mean", "batch", "cotangent"],
    "first_law": "the gradient of pred",
}
