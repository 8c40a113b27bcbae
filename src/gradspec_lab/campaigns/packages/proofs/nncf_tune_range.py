"""`TuneRange` of nncf hands its gradients on as they are, which its docstring does not say; it moves in steps."""

import torch
from nncf.torch.quantization.quantize_functions import TuneRange

low, span = torch.tensor([-0.7], requires_grad=True), torch.tensor([1.5], requires_grad=True)
tuned = TuneRange.apply(low, span, 16)
got = torch.autograd.grad(tuned, (low, span), (torch.ones(1), torch.zeros(1)))
ends = [TuneRange.apply(low.detach() + step, span.detach(), 16)[0].item() for step in (1e-3, -1e-3)]
slope = (ends[0] - ends[1]) / 2e-3
print(f"low becomes {tuned[0].item():.4f}, with a slope of {slope:.3f} in low; backward says {got[0].item()}")
assert got[0].item() == 1
assert abs(slope - 1) > 0.1
assert "gradient" not in TuneRange.__doc__
