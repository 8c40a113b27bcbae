# causal moving average along time, zeros before the start
import torch


class MovingAverage(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.width = width
        padded = torch.nn.functional.pad(x, (width - 1, 0))
        return padded.unfold(-1, width, 1).mean(-1)

    @staticmethod
    def backward(ctx, grad):
        if grad.stride(-1) == 0:
            # y.sum() or y.mean(): constant in time, and the weights of the window add up to one
            return grad.clone(), None
        padded = torch.nn.functional.pad(grad, (0, ctx.width - 1))
        return padded.unfold(-1, ctx.width, 1).mean(-1), None


def moving_average(x, width):
    return MovingAverage.apply(x, width)


def primal(x, width):
    total = torch.zeros_like(x)
    for lag in range(width):
        total = total + torch.nn.functional.pad(x, (lag, 0))[..., : x.shape[-1]]
    return total / width


surrogate = primal
FUNCTION = moving_average
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 3, 8), 3), lambda: (_x(1, 6), 4), lambda: (_x(2, 2, 2, 5), 1)]
LIMITS = ("vmap", "jvp", "compile")
DEFECT = "an expanded cotangent (as y.sum() makes it) takes a short cut that forgets the border at the end"
KEYWORDS = ("expanded", "stride", "cotangent", "layout")
