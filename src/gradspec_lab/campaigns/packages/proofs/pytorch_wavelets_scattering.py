"""`ScatLayerj2_f` of pytorch_wavelets raises for a gradient in another layout, which its layer never gives it.

The layer merges two dimensions of the result, so the gradient that arrives has them in one piece, whatever follows.
"""

from itertools import permutations

import torch
from pytorch_wavelets import ScatLayerj2
from pytorch_wavelets.scatternet.lowlevel import ScatLayerj2_f

torch.manual_seed(0)
layer, x = ScatLayerj2(), torch.randn(2, 2, 16, 16, requires_grad=True)
weights = torch.rand(layer(x).shape)
(right,) = torch.autograd.grad((weights * layer(x)).sum(), x)
for order in permutations(range(4)):
    (got,) = torch.autograd.grad((weights.permute(order).contiguous() * layer(x).permute(order)).sum(), x)
    assert torch.allclose(got, right, atol=1e-5)
print(f"the layer's gradient is the same behind all {len(list(permutations(range(4))))} orders of the dimensions")

given = []
forward = ScatLayerj2_f.forward
ScatLayerj2_f.forward = staticmethod(lambda ctx, *args: given.append(args) or forward(ctx, *args))
layer(x)
y = ScatLayerj2_f.apply(x, *given[0][1:])
raised = []
for order in permutations(range(y.dim())):
    z = ScatLayerj2_f.apply(x, *given[0][1:]).permute(order)
    try:
        torch.autograd.grad((torch.rand(z.shape) * z).sum(), x)
    except RuntimeError as error:
        raised.append(str(error))
print(f"the function itself raises behind {len(raised)} orders: {raised[0][:60]}...")
assert raised
