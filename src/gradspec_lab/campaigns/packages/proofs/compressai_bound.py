"""`LowerBound` of compressai lets a gradient pass that moves towards the bound, as it documents."""

import torch

from gradspec_lab.campaigns.packages.absent import absent

absent("torch_geometric", "torchvision", "pandas", "tomli", "PIL")
ops = __import__("compressai.ops.bound_ops", fromlist=["LowerBound"])
x = torch.tensor([0.5, 0.5, 2.0, 2.0], requires_grad=True)
(got,) = torch.autograd.grad(ops.LowerBound(1.0)(x), x, torch.tensor([1.0, -1.0, 1.0, -1.0]))
print(f"below the bound a gradient only where its step leads back: {got.tolist()}")
assert got.tolist() == [0.0, -1.0, 1.0, -1.0]
assert "replaced by the identity function" in " ".join(ops.LowerBound.__doc__.split())
