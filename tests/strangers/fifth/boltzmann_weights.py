"""Boltzmann weights of energies at a temperature, shifted by the least energy for stability."""

import torch


class Boltzmann(torch.autograd.Function):
    @staticmethod
    def forward(ctx, energy, temperature):
        energy.sub_(energy.amin(-1, keepdim=True))
        weight = torch.exp(-energy / temperature)
        weight = weight / weight.sum(-1, keepdim=True)
        ctx.save_for_backward(weight)
        ctx.temperature = temperature
        return weight

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        mean = (grad * weight).sum(-1, keepdim=True)
        return weight * (mean - grad) / ctx.temperature, None


def boltzmann(energy, temperature):
    return Boltzmann.apply(energy, temperature)


def primal(energy, temperature):
    return torch.softmax(-energy / temperature, -1)


surrogate = primal
FUNCTION = boltzmann
WRT = ("energy",)


def _x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CALLS = [lambda: (_x(0, 5), 1.0), lambda: (_x(1, 2, 3), 0.5), lambda: (_x(2, 2, 2, 4), 3.0)]
LIMITS = ("vmap", "jvp")
DEFECT = "forward shifts the caller's energies in place without mark_dirty"
KEYWORDS = ("in place", "inplace", "modifies", "mark_dirty", "input", "mutat")
