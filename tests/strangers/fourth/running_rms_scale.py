import torch
from torch import nn


class _ScaleByRunning(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean_square, momentum):
        y = x * torch.rsqrt(mean_square + 1e-6)
        with torch.no_grad():
            mean_square.lerp_(x.square().mean(0), momentum)
        ctx.mean_square = mean_square
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.rsqrt(ctx.mean_square + 1e-6), None, None


class RunningRMSScale(nn.Module):
    """Divides by the running RMS as it was before this batch, then takes the batch in."""

    def __init__(self, mean_square, *, momentum):
        super().__init__()
        self.register_buffer("mean_square", mean_square.clone())
        self.momentum = momentum

    def forward(self, x):
        return _ScaleByRunning.apply(x, self.mean_square, self.momentum)


def running_rms_scale(x, mean_square, momentum):
    return RunningRMSScale(mean_square, momentum=momentum)(x)


def primal(x, mean_square, momentum):
    return x / torch.sqrt(mean_square + 1e-6)


surrogate = primal
FUNCTION = running_rms_scale
WRT = ("x",)


def _args(seed, n, c, momentum):
    gen = torch.Generator().manual_seed(seed)
    x = 2 * torch.randn(n, c, generator=gen, dtype=torch.float64)
    return x, torch.rand(c, generator=gen, dtype=torch.float64) + 0.5, momentum


CALLS = [lambda: _args(0, 5, 3, 0.1), lambda: _args(1, 1, 2, 0.5), lambda: _args(2, 4, 1, 0.0)]
LIMITS = ("vmap", "jvp", "compile")
DEFECT = "backward reads the running buffer after forward has updated it, not the value that forward divided by"
KEYWORDS = ("buffer", "gradient", "mean_square", "x")
