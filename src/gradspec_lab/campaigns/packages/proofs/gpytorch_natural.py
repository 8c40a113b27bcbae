"""The natural variational distributions of gpytorch: the gradient is that in the expectation parameters.

Their docstrings say that it is the natural gradient. With S the covariance and m the mean these are m and S + m m'.
"""

import torch
from differences import off
from gpytorch.variational import NaturalVariationalDistribution, TrilNaturalVariationalDistribution
from gpytorch.variational.ciq_variational_strategy import _NgdInterpTerms
from gpytorch.variational.natural_variational_distribution import _NaturalToMuVarSqrt
from gpytorch.variational.tril_natural_variational_distribution import _TrilNaturalToMuVarSqrt

double = {"dtype": torch.float64}
torch.manual_seed(0)
root = torch.randn(3, 3, **double)
precision = root @ root.T + torch.eye(3, **double)
mean, covariance = torch.randn(3, **double), precision.inverse()
on_mean, on_root = torch.randn(3, **double), torch.randn(3, 3, **double).tril()

first, second = mean.clone().requires_grad_(), (covariance + torch.outer(mean, mean)).requires_grad_()
chol = torch.linalg.cholesky(second - torch.outer(first, first))
right = torch.autograd.grad((on_mean * first).sum() + (on_root * chol).sum(), (first, second))
vec, mat = (precision @ mean).requires_grad_(), (-precision / 2).requires_grad_()
found_mean, found_root = _NaturalToMuVarSqrt.apply(vec, mat)
got = torch.autograd.grad((on_mean * found_mean).sum() + (on_root * found_root).sum(), (vec, mat))
print("natural: off by", [f"{off(g, r):.0e}" for g, r in zip(got, right, strict=True)], "of that gradient")
assert max(off(g, r) for g, r in zip(got, right, strict=True)) < 1e-6

# Here the covariance is L L' for the inverse L of the second parameter.
tril = torch.linalg.cholesky(covariance).inverse().requires_grad_()
found_mean, found_root = _TrilNaturalToMuVarSqrt.apply(vec, tril)
assert torch.allclose(found_mean, mean)
got = torch.autograd.grad((on_mean * found_mean).sum() + (on_root * found_root).sum(), vec)[0]
print(f"its triangle: the mean's parameter off by {off(got, right[0]):.0e} of that gradient")
assert off(got, right[0]) < 1e-6
interp, on_terms = torch.randn(3, 2, **double), torch.randn(2, 2, **double)
terms = _NgdInterpTerms.apply(interp, vec, mat)
moved = torch.autograd.grad((on_terms[0] * terms[0]).sum() + (on_terms[1] * terms[1]).sum(), vec)[0]
first, second = mean.clone().requires_grad_(), (covariance + torch.outer(mean, mean)).requires_grad_()
spread = second - torch.outer(first, first)
plain = (on_terms[0] * (interp.T @ first)).sum() + (on_terms[1] * ((spread @ interp) * interp).sum(0)).sum()
right = torch.autograd.grad(plain, first)[0]
print(f"interpolated: off by {off(moved, right):.0e} of that gradient")
assert off(moved, right) < 1e-3
for said in (NaturalVariationalDistribution.__doc__, TrilNaturalVariationalDistribution.__doc__):
    assert "natural gradient" in " ".join(said.split()).lower()
assert "with respect to the **cannonical parameters**" in _NgdInterpTerms.__doc__
