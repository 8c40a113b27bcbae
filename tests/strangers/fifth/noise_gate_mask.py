"""Noise gate of audio samples: the gated signal and the gate itself as zeros and ones."""

import torch


class NoiseGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, signal, level):
        gate = (signal.abs() > level).to(signal.dtype)
        ctx.save_for_backward(gate)
        return signal * gate, gate

    @staticmethod
    def backward(ctx, grad, _gate):
        (gate,) = ctx.saved_tensors
        return grad * gate, None


def noise_gate(signal, level):
    return NoiseGate.apply(signal, level)


def primal(signal, level):
    gate = (signal.detach().abs() > level).to(signal.dtype)
    return torch.where(gate > 0, signal, torch.zeros_like(signal)), gate


surrogate = primal
FUNCTION = noise_gate
WRT = ("signal",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 6), 0.5), lambda: (_x(1, 2, 4), 1.0)]
LIMITS = ("vmap", "jvp")
DEFECT = "the gate is not marked as non-differentiable: it claims to require grad and its gradient is dropped"
KEYWORDS = ("non-differentiable", "mark", "requires_grad", "output", "nondifferentiable", "gate")
