"""`cayley` and `expm` of iunets, which make orthogonal kernels of a skew-symmetric weight, have wrong gradients.

The second one is beside torch's own exponential, of the same values and with a right gradient. In `expm` the sum V of
the Pade approximation begins with U, and in `cayley` the direction is taken for the cotangent.
"""

import torch
from differences import both, drawn, off
from iunets.cayley import cayley
from iunets.expm import expm

weight = drawn(3, 3, scale=0.3)
for name, function in (("cayley", cayley.apply), ("expm", expm.apply)):
    ((got, expected),) = both(lambda w, f=function: f((w - w.mT)[None]), weight)
    along = float((got * expected).sum() / (got.norm() * expected.norm()))
    print(f"{name}: off by {off(got, expected):.0%} of the true gradient; the cosine between them is {along:.2f}")
    assert off(got, expected) > 0.2


def _plain_cayley(w):
    one = torch.eye(3, dtype=torch.float64)
    return torch.linalg.solve(one + w - w.mT, one - w + w.mT)


for name, function, plain in (
    ("cayley", cayley.apply, _plain_cayley),
    ("expm", expm.apply, lambda w: torch.linalg.matrix_exp(w - w.mT)),
):
    same = torch.allclose(function((weight - weight.mT)[None])[0], plain(weight))
    ((got, expected),) = both(plain, weight)
    print(f"{name} in plain torch: the same values: {same}, off by {off(got, expected):.0e}")
    assert same
    assert off(got, expected) < 1e-6
