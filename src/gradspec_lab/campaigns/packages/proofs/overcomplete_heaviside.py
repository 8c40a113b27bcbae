"""`HeavisidePseudoGradient` of overcomplete is linear to the digits of a float32, in which its output is."""

import torch
from differences import drawn, off

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("timm", "torchvision", "matplotlib", "cv2", "PIL", "skimage", "sklearn", "transformers")
bare("overcomplete")
from overcomplete.sae.jump_sae import heaviside  # noqa: E402
from overcomplete.sae.kernels import silverman_kernel  # noqa: E402

x, threshold = drawn(6, 8), (0.1 * torch.ones(8, dtype=torch.float64)).requires_grad_()
one, two = (torch.randn(6, 8, generator=torch.Generator().manual_seed(n)) for n in range(2))
output = heaviside(x, threshold, silverman_kernel, torch.tensor(0.5))
print(f"the output of float64 is {output.dtype}")
assert output.dtype == torch.float32


def _gradient(cotangent):
    return torch.autograd.grad(output, threshold, cotangent, retain_graph=True)[0]


together, apart = _gradient(3 * one - 5 * two), 3 * _gradient(one) - 5 * _gradient(two)
print(f"g(3 v - 5 w) is off by {off(together, apart):.0e} of 3 g(v) - 5 g(w)")
assert off(together, apart) < 1e-6
# The rule itself, in float64.
delta = (x - threshold).detach()
plain = -(1 / 0.5) * (silverman_kernel(delta, torch.tensor(0.5)) * one).sum(0)
print(f"the gradient of the threshold is off by {off(_gradient(one), plain):.0e} of its rule")
assert off(_gradient(one), plain) < 1e-6
