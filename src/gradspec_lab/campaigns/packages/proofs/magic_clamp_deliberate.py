"""The gradients of magic_clamp, both documented: straight-through where it leads back into range; a projected step."""

import torch
from magic_clamp.autograd import ClampWithConditionalSTEFunction, ConstraintWithHyperPGDFunction
from magic_clamp.core import magic_clamp, project_to_sphere

x = torch.tensor([-2.0, 0.5, 2.0, 2.0], requires_grad=True)
given = torch.tensor([1.0, 1.0, 1.0, -1.0])
(got,) = torch.autograd.grad(magic_clamp(x, -1.0, 1.0, preserve_norm=False), x, given)
print(f"outside of the range, a gradient only where its step leads back: {got.tolist()}")
assert got.tolist() == [0.0, 1.0, 1.0, 0.0]
points = torch.tensor([[3.0, 4.0]], requires_grad=True)
y = ConstraintWithHyperPGDFunction.apply(points, project_to_sphere, False)
given = torch.tensor([[0.5, -0.5]])
(got,) = torch.autograd.grad(y, points, given)
assert torch.allclose(got, points - project_to_sphere(y.detach() - given))
assert "conditional STE" in ClampWithConditionalSTEFunction.__doc__
assert "hyper PGD" in " ".join(ConstraintWithHyperPGDFunction.__doc__.split())
