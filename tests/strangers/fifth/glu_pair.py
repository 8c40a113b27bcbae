"""Gated linear unit of two separate tensors, with a generated vmap rule."""

import torch


class GatePair(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(value, gate):
        return value * torch.sigmoid(gate)

    @staticmethod
    def setup_context(ctx, inputs, output):
        gate, value = inputs
        ctx.save_for_backward(value, gate)

    @staticmethod
    def backward(ctx, grad):
        value, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        return grad * s, grad * value * s * (1 - s)


def glu_pair(value, gate):
    return GatePair.apply(value, gate)


def primal(value, gate):
    return torch.nn.functional.glu(torch.cat([value, gate], -1), -1)


surrogate = primal
FUNCTION = glu_pair
WRT = ("value", "gate")


def _args(seed, *shape):
    gen = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=gen, dtype=torch.float64) for _ in range(2))


CALLS = [lambda: _args(0, 4), lambda: _args(1, 2, 3), lambda: _args(2, 1, 2, 2)]
LIMITS = ("jvp",)
DEFECT = "setup_context unpacks its inputs in the wrong order"
KEYWORDS = ("order", "swapped", "setup_context", "value", "gate", "gradient")
