"""The sampling semirings of torch-struct: a gradient is a draw, on average the derivative, as their docstrings say."""

import torch
from torch_struct.semirings.sample import MultiSampledSemiring, SampledSemiring, _SampledLogSumExp

x = torch.tensor([[0.3, -0.5, 1.0]], dtype=torch.float64, requires_grad=True)
torch.manual_seed(0)
draws = torch.cat([torch.autograd.grad(_SampledLogSumExp.apply(x, -1).sum(), x)[0] for _ in range(4000)])
apart = (draws.mean(0) - x.detach().softmax(-1)[0]).abs().max()
print(f"each gradient is one of {sorted({tuple(row) for row in draws.tolist()})}; their mean is off by {apart:.3f}")
assert bool((draws.sum(1) == 1).all())
assert apart < 0.03
assert '"Gradients" give sample' in SampledSemiring.__doc__
assert '"Gradients" give up to 16 samples' in MultiSampledSemiring.__doc__
