"""The LIF step of spikingjelly: autograd of its formula, with an arctangent for the spike, gives its gradients."""

import torch
from differences import off
from spikingjelly.activation_based import neuron, surrogate

torch.manual_seed(0)
given = 2 * torch.rand(4, 2, 3)


class Spike(torch.autograd.Function):
    """A step, and the slope of an arctangent in backward."""

    @staticmethod
    def forward(ctx, x):
        """Return 1 from 0 on."""
        ctx.save_for_backward(x)
        return (x >= 0).to(x)

    @staticmethod
    def backward(ctx, grad):
        """Return alpha / 2 / (1 + (pi / 2 alpha x)^2), for an alpha of 2."""
        (x,) = ctx.saved_tensors
        return grad / (1 + (torch.pi * x) ** 2)


def _plain(x):
    v, spikes = torch.zeros(2, 3), []
    for step in x:
        v = v + (step - v) / 2
        spikes.append(Spike.apply(v - 1))
        v = (1 - spikes[-1]) * v
    return torch.stack(spikes)


node = neuron.LIFNode(tau=2.0, surrogate_function=surrogate.ATan(), step_mode="m")
weights = torch.randn(4, 2, 3)
found = []
for function in (node, _plain):
    x = given.clone().requires_grad_()
    spikes = function(x)
    found.append((spikes.detach(), torch.autograd.grad((weights * spikes).sum(), x)[0]))
print(f"the same spikes: {torch.equal(found[0][0], found[1][0])}; gradients off by {off(found[0][1], found[1][1]):.0e}")
assert torch.equal(found[0][0], found[1][0])
assert off(found[0][1], found[1][1]) < 1e-5
assert "surrogate" in neuron.LIFNode.__init__.__doc__
