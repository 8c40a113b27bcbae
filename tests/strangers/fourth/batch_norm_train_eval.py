import torch
from torch.autograd.function import once_differentiable


class BatchNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, training, eps):
        if training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
        else:
            mean, var = running_mean, running_var
        rstd = torch.rsqrt(var + eps)
        xhat = (x - mean) * rstd
        ctx.save_for_backward(xhat, weight, rstd)
        return xhat * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        xhat, weight, rstd = ctx.saved_tensors
        gb = gy.sum(0)
        gw = (gy * xhat).sum(0)
        n = gy.shape[0]
        gx = weight * rstd * (gy - gb / n - xhat * gw / n)
        return gx, gw, gb, None, None, None, None


def batch_norm(x, weight, bias, running_mean, running_var, training, eps):
    return BatchNormFunction.apply(x, weight, bias, running_mean, running_var, training, eps)


def primal(x, weight, bias, running_mean, running_var, training, eps):
    if training:
        running_mean = x.mean(0)
        running_var = (x - running_mean).square().mean(0)
    return (x - running_mean) / (running_var + eps).sqrt() * weight + bias


surrogate = primal
FUNCTION = batch_norm
WRT = ("x", "weight", "bias")


def _args(seed, n, c, training):
    gen = torch.Generator().manual_seed(seed)

    def r(*s):
        return torch.randn(*s, generator=gen, dtype=torch.float64)

    return r(n, c), r(c), r(c), r(c), r(c).square() + 0.3, training, 1e-5


CALLS = [lambda: _args(0, 6, 3, True), lambda: _args(1, 5, 2, False), lambda: _args(2, 1, 3, False)]
LIMITS = ("double_backward", "vmap", "jvp", "half")
DEFECT = "in eval mode backward still applies the formula of training, as if the running statistics came from the batch"
KEYWORDS = ("x", "eval", "training", "gradient")
