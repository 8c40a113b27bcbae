"""`OMTMultivariateNormal` of pyro: of a draw its gradient is not the derivative, and on average it is.

Its docstring calls it an OMT gradient, of lower variance than that of the draw.
"""

import pyro.distributions as dist
import torch

torch.manual_seed(0)
tril = torch.tensor([[1.0, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.5, 1.2]], dtype=torch.float64, requires_grad=True)
loc = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
matrix = torch.tensor([[1.0, 0.2, 0.0], [0.2, 2.0, 0.3], [0.0, 0.3, 0.5]], dtype=torch.float64)


def _gradient(count):
    x = dist.OMTMultivariateNormal(loc, tril).rsample((count,))
    return torch.autograd.grad((x @ matrix * x).sum() / count, tril)[0]


# E[x' M x] = loc' M loc + tr(M L L'), whose derivative in L is 2 M L, below the diagonal.
right = (2 * matrix @ tril.detach()).tril()
one, mean = _gradient(1), _gradient(200_000)
torch.manual_seed(0)
noise = torch.randn(1, 3, dtype=torch.float64)
of_the_draw = (2 * matrix @ (loc + (noise @ tril.detach().T)[0]))[:, None] * noise
torch.manual_seed(0)
one = _gradient(1)
print(f"of one draw off by {(one - of_the_draw).norm() / of_the_draw.norm():.2f} of its derivative;", end=" ")
print(f"of 200,000 by {(mean - right).norm() / right.norm():.3f} of the derivative of the mean")
assert (one - of_the_draw).norm() > 0.1 * of_the_draw.norm()
assert (mean - right).norm() < 0.02 * right.norm()
assert "OMT gradients" in dist.OMTMultivariateNormal.__doc__
