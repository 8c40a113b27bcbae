import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, mean, var, eps):
        inv = (var + eps).rsqrt()
        x_hat = (x - mean) * inv
        ctx.save_for_backward(x_hat, weight, inv)
        return x_hat * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x_hat, weight, inv = ctx.saved_tensors
        g = grad * weight
        grad_x = inv * (g - g.mean(0) - x_hat * (g * x_hat).mean(0))
        return grad_x, (grad * x_hat).sum(0), grad.sum(0), None, None, None


class FoldedBN(nn.Module):
    """BatchNorm1d for (N, C): batch statistics in training, running statistics in evaluation."""

    eps, momentum = 1e-5, 0.1

    def __init__(self, channels):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        for name, start in (("mean", torch.zeros(channels)), ("var", torch.ones(channels))):
            self.register_buffer(name, start)

    def forward(self, x):
        if self.training:
            var, mean = torch.var_mean(x.detach(), 0, unbiased=False)
            self.mean.lerp_(mean, self.momentum)
            self.var.lerp_(var, self.momentum)
        else:
            mean, var = self.mean.clone(), self.var.clone()
        return _BatchNorm.apply(x, self.weight, self.bias, mean, var, self.eps)


def module():
    bn = FoldedBN(3).double()
    g = torch.Generator().manual_seed(138)
    bn(2 + 3 * torch.randn(20, 3, generator=g, dtype=torch.float64))
    return bn.eval()


wrt = ("x", "weight", "bias")


def calls():
    g = torch.Generator().manual_seed(238)
    x = torch.randn(6, 3, generator=g, dtype=torch.float64)
    return [((x,), {}), ((x[:1],), {})]


def primal(bn, x):
    mean, var = (bn.mean, bn.var) if not bn.training else (x.mean(0), x.var(0, unbiased=False))
    return (x - mean) / (var + bn.eps).sqrt() * bn.weight + bn.bias


def show():
    bn, x = module(), calls()[0][0][0].requires_grad_()
    (mine,) = torch.autograd.grad(bn(x).pow(3).sum(), x)
    (true,) = torch.autograd.grad(primal(bn, x).pow(3).sum(), x)
    return (mine - true).abs().max() > 1e-2


TRUTH = {
    "sound": False,
    "defect": "In evaluation the gradient of x still has the terms of the batch statistics, though the running "
    "ones are constants.",
    "rank": "wrong",
    "names": ["eval", "evaluation", "running", "batch statistics", "gradient of x"],
    "first_law": "the gradient of x",
}
