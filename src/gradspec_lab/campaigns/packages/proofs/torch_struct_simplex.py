"""`SparseMaxSemiring` of torch-struct: forward subtracts the norm of the weights, backward is that of half its square.

Sparsemax solves max <w, x> - |w|^2 / 2 over the simplex; its gradient, the weights, is what backward returns.
"""

import torch
from differences import both, drawn, off
from torch_struct.semirings.sparse_max import _SimplexProject, project_simplex

x = drawn(4, 5)
((got, expected),) = both(lambda x: _SimplexProject.apply(x, -1), x)


def _plain(x):
    weights = project_simplex(x, -1)
    return (weights * x).sum(-1) - weights.square().sum(-1) / 2


((right, expected_of_plain),) = both(_plain, x)
print(f"off by {off(got, expected):.2f} of the true gradient;", end=" ")
print(f"by {off(got, expected_of_plain):.0e} of that with half the square")
assert off(got, expected) > 0.03
assert off(right, expected_of_plain) < 1e-6
assert off(got, expected_of_plain) < 1e-6
value = torch.tensor([[0.3, 0.2, 0.1]], dtype=torch.float64)
returned, right = _SimplexProject.apply(value, -1).item(), _plain(value).item()
print(f"of {value[0].tolist()} it returns {returned:.4f}, the maximum is {right:.4f}")
assert abs(returned - right) > 0.1
