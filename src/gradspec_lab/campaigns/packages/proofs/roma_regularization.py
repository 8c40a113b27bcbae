"""`_ProcrustesRegularization` of roma adds the gradient of a penalty whatever the cotangent is, as it documents."""

import torch
from roma.mappings import _ProcrustesRegularization, special_procrustes

M = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
weights = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _gradient(regularization, penalty=0.0):
    rotation = special_procrustes(M, regularization=regularization)
    loss = (weights * rotation).sum() + penalty * (M - rotation.detach()).square().sum() / 2
    return torch.autograd.grad(loss, M)[0]


# It is that of 1/2 |M - R|^2 times the regularization, with R held: the derivative of |M - R|^2 is twice M - R.
print(f"off by {(_gradient(0.1) - _gradient(0.0, 0.1)).abs().max():.0e} of the gradient with the penalty in the loss")
assert torch.allclose(_gradient(0.1), _gradient(0.0, 0.1))
assert not torch.allclose(_gradient(0.1), _gradient(0.0))
assert "does not depend on the gradient of R" in _ProcrustesRegularization.__doc__
assert "added to the gradient during backpropagation" in special_procrustes.__doc__
