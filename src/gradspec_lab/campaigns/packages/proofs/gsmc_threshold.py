"""`ExactSpike` of gsmc_torch caps the flux for the voltage, and for a threshold the flux times the cotangent.

Its docstring calls gamma a cap on the flux. For a threshold that is trained the gradient is cut from above only: a
cotangent of 1000 gives as much as one of 0.01, and one of -1000 all of it.
"""

import torch
from gsmc_torch import ExactSpike

voltage = torch.tensor([1.0], requires_grad=True)
threshold = torch.tensor([0.5], requires_grad=True)
for cotangent in (0.01, 1.0, 1000.0, -1000.0):
    y = ExactSpike.apply(voltage, threshold, 1.0, 1.0, False, 0.02, 2.0)
    of_voltage, of_threshold = torch.autograd.grad(y, (voltage, threshold), torch.tensor([cotangent]))
    print(f"cotangent {cotangent}: the voltage gets {of_voltage.item():.4g}, the threshold {of_threshold.item():.4g}")
    if cotangent == 1000:
        assert of_threshold.item() == -1
    if cotangent == -1000:
        assert of_threshold.item() == 2000
assert "hard cap on the per-neuron IFT flux" in " ".join(ExactSpike.__doc__.split())
