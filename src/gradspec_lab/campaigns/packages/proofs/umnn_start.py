"""The integrals of UMNN 1.71 forget in backward where they start; from zero on their gradient is the right one."""

import torch
from differences import both, drawn, off
from UMNN import IntegrandNN, NeuralIntegral

torch.manual_seed(0)
net = IntegrandNN(1 + 2, [8]).double()
flat = torch.cat([p.reshape(-1) for p in net.parameters()]).detach()
x = torch.ones(4, 1, dtype=torch.float64)
found = {}
for start in (0.0, 0.5):
    for steps in (10, 60):

        def integral(h, start=start, steps=steps):
            """Return the integrals up to one."""
            return NeuralIntegral.apply(torch.full_like(x, start), x, net, flat, h, steps)

        (pair,) = both(integral, drawn(4, 2))
        found[start, steps] = off(*pair)
print({f"from {start}, {steps} steps": f"h off by {value:.0e}" for (start, steps), value in found.items()})
assert found[0.0, 60] < 1e-2
assert found[0.5, 60] > 0.1
