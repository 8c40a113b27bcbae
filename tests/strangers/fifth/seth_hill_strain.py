"""Seth-Hill strain measure (s^m - 1)/m with forward and reverse derivatives by hand."""

import torch


class SethHill(torch.autograd.Function):
    @staticmethod
    def forward(stretch, m):
        return (stretch**m - 1) / m

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        s, m = ctx.saved_tensors
        power = s**m
        d_m = (power * s.log() - (power - 1) / m) / m
        return grad * power / s, (grad * d_m).sum_to_size(m.shape)

    @staticmethod
    def jvp(ctx, t_stretch, t_m):
        s, m = ctx.saved_tensors
        power = s**m
        out = torch.zeros_like(power)
        if t_stretch is not None:
            out = out + power / s * t_stretch
        if t_m is not None:
            out = out + (power * s.log() / m - (power - 1) / m) * t_m
        return out


def seth_hill(stretch, m):
    return SethHill.apply(stretch, m)


def primal(stretch, m):
    return torch.expm1(m * stretch.log()) / m


surrogate = primal
FUNCTION = seth_hill
WRT = ("stretch", "m")


def _args(seed, shape, m):
    gen = torch.Generator().manual_seed(seed)
    return 0.5 + torch.rand(shape, generator=gen, dtype=torch.float64), torch.tensor(m, dtype=torch.float64)


CALLS = [lambda: _args(0, (4,), 1.0), lambda: _args(1, (2, 3), 2.0), lambda: _args(2, (3,), -0.5)]
LIMITS = ("vmap",)
DEFECT = "jvp divides the second term by m once instead of twice: it disagrees with backward in m"
KEYWORDS = ("jvp", "forward mode", "tangent", "forward-mode")
