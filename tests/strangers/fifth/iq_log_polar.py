"""In-phase and quadrature samples to log-magnitude and phase."""

import torch


class LogPolar(torch.autograd.Function):
    @staticmethod
    def forward(i, q):
        return torch.log(torch.hypot(i, q)), torch.atan2(q, i)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g_phase, g_log):
        i, q = ctx.saved_tensors
        power = i * i + q * q
        g_i = (g_log * i - g_phase * q) / power
        g_q = (g_log * q + g_phase * i) / power
        return g_i, g_q


def log_polar(i, q):
    return LogPolar.apply(i, q)


def primal(i, q):
    z = torch.complex(i, q)
    return z.abs().log(), z.angle()


surrogate = primal
FUNCTION = log_polar
WRT = ("i", "q")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    angle = 0.3 + torch.rand(shape, generator=gen, dtype=torch.float64)
    r = 0.5 + torch.rand(shape, generator=gen, dtype=torch.float64)
    return r * torch.cos(angle), -r * torch.sin(angle)


CALLS = [lambda: _args(0, 4), lambda: _args(1, 2, 3), lambda: _args(2, 1, 1)]
LIMITS = ("vmap", "jvp")
DEFECT = "backward names its two incoming gradients in the wrong order"
KEYWORDS = ("output", "swapped", "order", "cotangent", "gradient")
