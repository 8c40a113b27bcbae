"""`Ternary` of micronet: straight through, as a comment says; a threshold, which is only compared with, gives none."""

import inspect

import torch
from differences import drawn

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("torchvision")
bare("micronet", "micronet.compression", "micronet.compression.quantization")
from micronet.compression.quantization.wbwtab import quantize  # noqa: E402

weight, (one, other) = drawn(4, 3, 3, 3), (drawn(4, 3, 3, 3, seed=1).detach(), drawn(4, 1, 1, 1, seed=2).detach())
ternary, threshold = quantize.Ternary.apply(weight)
(got,) = torch.autograd.grad((one * ternary).sum() + (other * threshold).sum(), weight)
(by_threshold,) = torch.autograd.grad((0.7 * weight.abs().mean((3, 2, 1), keepdim=True) * other).sum(), weight)
print(f"the gradient is the cotangent: {torch.equal(got, one)}; by the threshold, {by_threshold.norm().item():.2f}")
assert torch.equal(got, one)
source = inspect.getsource(quantize)
used = [line.strip() for line in source.splitlines() if "threshold" in line and "output_abs" in line]
print("the threshold is used in", used)
assert used == ["mask_le = output_abs.le(threshold)", "mask_gt = output_abs.gt(threshold)"]
assert "ste" in inspect.getsource(quantize.Ternary.backward)
