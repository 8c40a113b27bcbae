"""`ThresholdSubtract` of rockpool has a window as its gradient; where that is zero, forward is flat."""

import torch
from rockpool.nn.modules.torch.lif_torch import ThresholdSubtract

voltage = torch.tensor([0.1, 0.4, 0.6, 0.9, 1.2, 2.5], dtype=torch.float64, requires_grad=True)
spikes = ThresholdSubtract.apply(voltage, 1.0, 0.5)
(got,) = torch.autograd.grad(spikes.sum(), voltage)
moved = [ThresholdSubtract.apply(voltage.detach() + step, 1.0, 0.5) for step in (1e-3, -1e-3)]
print(f"spikes {spikes.tolist()}, gradients {got.tolist()}, slopes {((moved[0] - moved[1]) / 2e-3).tolist()}")
assert torch.equal(moved[0], moved[1])
assert got.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
