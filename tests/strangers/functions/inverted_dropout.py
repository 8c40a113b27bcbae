import torch
from torch import nn


class DropoutFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, keep):
        mask = torch.bernoulli(torch.full_like(x, keep)) / keep
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        mask, = ctx.saved_tensors
        return grad_output * mask, None


class InvertedDropout(nn.Module):
    def __init__(self, p=0.4):
        super().__init__()
        self.keep = 1 - p

    def forward(self, x):
        if self.training:
            return DropoutFn.apply(x, self.keep)
        return x * self.keep


def module():
    return InvertedDropout(0.4)


wrt = ("x",)


def calls():
    g = torch.Generator().manual_seed(57)
    x = torch.randn(4, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[0],), {})]


primal = None


def show():
    torch.manual_seed(0)
    m = module()
    x = torch.ones(20000, dtype=torch.float64)
    train = m.train()(x).mean().item()
    test = m.eval()(x).mean().item()
    return abs(train - 1) < 0.02 and abs(test - 0.6) < 1e-9


TRUTH = {
    "sound": False,
    "defect": "Training already divides by keep, and eval mode multiplies by keep once more, so the module's mean output is off by keep in eval mode.",
    "rank": "wrong",
    "names": ["eval", "training mode", "mode", "expectation", "mean"],
    "first_law": "eval mode is the expectation of training mode",
}
