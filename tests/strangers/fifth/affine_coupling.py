"""Affine coupling of a normalising flow: y = x exp(s) + t and the log-determinant."""

import torch


class AffineCoupling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log_scale, shift):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, log_scale)
        return x * log_scale.exp() + shift, log_scale.sum(-1)

    @staticmethod
    def backward(ctx, g_y, g_logdet):
        x, log_scale = ctx.saved_tensors
        scale = log_scale.exp()
        g_x = g_scale = g_shift = None
        if g_y is not None:
            g_x, g_shift = g_y * scale, g_y
        if g_logdet is not None:
            g_scale = g_logdet.unsqueeze(-1).expand_as(log_scale)
            if g_y is not None:
                g_scale = g_scale + g_y * x * scale
        return g_x, g_scale, g_shift


def coupling(x, log_scale, shift):
    return AffineCoupling.apply(x, log_scale, shift)


def primal(x, log_scale, shift):
    return torch.addcmul(shift, x, log_scale.exp()), log_scale.sum(-1)


surrogate = primal
FUNCTION = coupling
WRT = ("x", "log_scale", "shift")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=gen, dtype=torch.float64) for _ in range(3))


CALLS = [lambda: _args(0, 3, 4), lambda: _args(1, 1, 2), lambda: _args(2, 2, 2, 3)]
LIMITS = ("vmap", "jvp")
DEFECT = "without a gradient for the log-determinant, log_scale gets none from y either"
KEYWORDS = ("log_scale", "output", "only", "logdet", "none", "missing")
