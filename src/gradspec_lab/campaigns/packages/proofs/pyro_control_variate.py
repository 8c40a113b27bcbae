"""`AVFMultivariateNormal` of pyro: `control_var` gets the gradient of half the squared norm of another gradient.

Its docstring says that it is learned for gradients of lower variance; the draw does not depend on it.
"""

import pyro.distributions as dist
import torch

tril = torch.tensor([[1.0, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.5, 1.2]], dtype=torch.float64, requires_grad=True)
control = torch.randn(2, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
loc, weights = torch.zeros(3, dtype=torch.float64), torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def _gradients(control):
    torch.manual_seed(0)
    x = dist.AVFMultivariateNormal(loc, tril, control).rsample()
    return torch.autograd.grad((weights * x).sum(), (tril, control))


_, got = _gradients(control)
expected = torch.zeros_like(got)
for place in range(control.numel()):
    ends = []
    for step in (1e-6, -1e-6):
        moved = control.detach().clone()
        moved.view(-1)[place] += step
        ends.append(_gradients(moved.requires_grad_())[0].square().sum() / 2)
    expected.view(-1)[place] = (ends[0] - ends[1]) / 2e-6
print(f"off by {(got - expected).norm() / expected.norm():.0e} of the gradient of half that squared norm")
assert torch.allclose(got, expected, atol=1e-6)
assert got.norm() > 0.1
assert "lower variance gradients" in " ".join(dist.AVFMultivariateNormal.__doc__.split())
