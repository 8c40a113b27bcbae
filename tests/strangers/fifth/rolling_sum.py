"""Causal moving sum along the last dim by differences of a cumulative sum, with its own vmap rule."""

import torch


def _moving(x, width):
    total = x.cumsum(-1)
    width = min(width, x.shape[-1])
    return total - torch.cat([torch.zeros_like(total[..., :width]), total[..., :-width]], -1)


class RollingSum(torch.autograd.Function):
    @staticmethod
    def forward(x, width):
        return _moving(x, width)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.width = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return RollingSum.apply(grad.flip(-1), ctx.width).flip(-1), None

    @staticmethod
    def vmap(info, in_dims, x, width):
        return RollingSum.apply(x, width), 0


def rolling_sum(x, width):
    return RollingSum.apply(x, width)


def primal(x, width):
    padded = torch.nn.functional.pad(x, (width - 1, 0))
    return padded.unfold(-1, width, 1).sum(-1)


surrogate = primal
FUNCTION = rolling_sum
WRT = ("x",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 6), 3), lambda: (_x(1, 3, 4), 2), lambda: (_x(2, 2, 2, 5), 8)]
LIMITS = ("jvp",)
DEFECT = "the vmap rule takes the batch dim to be the first whatever in_dims says"
KEYWORDS = ("vmap", "in_dims", "batch dim", "batched")
