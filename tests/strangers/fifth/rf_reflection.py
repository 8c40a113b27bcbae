"""Complex reflection coefficient of a load against a line impedance."""

import torch


class Reflection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, load, line):
        ctx.save_for_backward(load, line)
        return (load - line) / (load + line)

    @staticmethod
    def backward(ctx, grad):
        load, line = ctx.saved_tensors
        inv = 1 / (load + line).square()
        g_load = g_line = None
        if ctx.needs_input_grad[0]:
            g_load = grad * (2 * line * inv).conj()
        if ctx.needs_input_grad[1]:
            g_line = (-2 * grad * load * inv).sum_to_size(line.shape)
        return g_load, g_line


def reflection(load, line):
    return Reflection.apply(load, line)


def primal(load, line):
    return 1 - 2 * line / (load + line)


surrogate = primal
FUNCTION = reflection
WRT = ("load", "line")


def _args(seed, shape, lshape):
    gen = torch.Generator().manual_seed(seed)
    load = 2 + torch.randn(shape, generator=gen, dtype=torch.complex128)
    return load, 2 + torch.randn(lshape, generator=gen, dtype=torch.complex128)


CALLS = [lambda: _args(0, (4,), (4,)), lambda: _args(1, (2, 3), (3,))]
LIMITS = ("vmap", "jvp", "half")
DEFECT = "the gradient of line uses the derivative without its conjugate"
KEYWORDS = ("conj", "complex", "line", "imaginary", "gradient")
